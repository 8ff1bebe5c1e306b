//! The operator's settings of webhooks.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;
use ureq::Proxy;

/// An invalid setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WebhookSettingError {
    /// The text is not an IP address or network.
    #[error("must be an IP address or a network such as 10.0.0.0/8")]
    Network,
    /// The text is not the URL of a proxy.
    #[error("must be the URL of an HTTP proxy, such as http://proxy.example.com:3128")]
    Proxy,
}

/// Where requests may go.
#[derive(Clone, Debug, Default)]
pub struct WebhookSettings {
    /// Whether `http` is permitted besides `https`.
    pub allow_http: bool,
    /// Networks that are permitted although they are not public.
    pub networks: Vec<PermittedNetwork>,
    /// The proxy that all requests go through. The proxy looks up the hosts, so it has to reject addresses itself.
    pub proxy: Option<WebhookProxy>,
}

/// An IP address or network to which requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermittedNetwork(IpNet);

impl PermittedNetwork {
    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl FromStr for PermittedNetwork {
    type Err = WebhookSettingError;

    fn from_str(text: &str) -> Result<Self, WebhookSettingError> {
        let alone = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(|_| alone()).map(Self).map_err(|_| WebhookSettingError::Network)
    }
}

/// An HTTP proxy that connects to hosts by `CONNECT`.
#[derive(Clone, Debug)]
pub struct WebhookProxy(Proxy);

impl WebhookProxy {
    pub(crate) fn as_proxy(&self) -> Proxy {
        self.0.clone()
    }

    /// Returns whether a host and port are those of the proxy.
    pub(crate) fn is_at(&self, host: &str, port: u16) -> bool {
        self.0.host().trim_matches(['[', ']']) == host && self.0.port() == port
    }
}

impl FromStr for WebhookProxy {
    type Err = WebhookSettingError;

    fn from_str(text: &str) -> Result<Self, WebhookSettingError> {
        // Other protocols require features of the HTTP client that are not built in.
        if !text.starts_with("http://") && !text.starts_with("https://") {
            return Err(WebhookSettingError::Proxy);
        }
        Proxy::new(text).map(Self).map_err(|_| WebhookSettingError::Proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_proxies_are_read_or_rejected() {
        let network: PermittedNetwork = "10.0.0.0/8".parse().expect("a network");
        for (address, inside) in [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false), ("::1", false)] {
            assert_eq!(network.contains(address.parse().expect(address)), inside, "{address}");
        }
        assert!("127.0.0.1".parse::<PermittedNetwork>().is_ok_and(|alone| alone.contains(IpAddr::from([127, 0, 0, 1]))));
        for bad in ["", "10.0.0.0/33", "localhost"] {
            assert_eq!(bad.parse::<PermittedNetwork>(), Err(WebhookSettingError::Network), "{bad}");
        }
        let proxy: WebhookProxy = "http://user:word@proxy.example:3128".parse().expect("a proxy");
        assert!(proxy.is_at("proxy.example", 3128) && !proxy.is_at("proxy.example", 80) && !proxy.is_at("other", 3128));
        for bad in ["", "proxy.example:3128", "socks5://proxy.example", "http://"] {
            assert!(bad.parse::<WebhookProxy>().is_err(), "{bad}");
        }
    }
}
