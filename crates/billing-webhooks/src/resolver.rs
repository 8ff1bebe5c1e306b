//! Looks up hosts for the HTTP client, and rejects those with an address to which requests may not go.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;

use thiserror::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::address::is_public;
use crate::settings::WebhookSettings;

/// The maximum number of addresses that are tried.
const MAX_ADDRESSES: usize = 16;

/// The error of a host to which requests may not go: one of its addresses is not permitted, or it has none. It does not tell
/// which, so that a caller learns nothing about the names of a private network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the host is not public")]
pub(crate) struct HostNotPublic;

/// A function that returns all addresses of a host.
pub(crate) type Lookup = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks up a host with the operating system.
pub(crate) fn system_lookup() -> Arc<Lookup> {
    Arc::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
}

/// Returns whether the settings permit requests to an address.
pub(crate) fn is_permitted(settings: &WebhookSettings, address: IpAddr) -> bool {
    settings.networks.iter().any(|network| network.contains(address)) || is_public(address)
}

/// The resolver of the HTTP client.
pub(crate) struct PublicResolver {
    pub(crate) settings: WebhookSettings,
    pub(crate) lookup: Arc<Lookup>,
}

impl fmt::Debug for PublicResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicResolver").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl PublicResolver {
    /// Looks up a host once, on another thread, because the system's function has no time limit.
    fn addresses(&self, host: String, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, ureq::Error> {
        let (sender, receiver) = sync_channel(1);
        let lookup = Arc::clone(&self.lookup);
        thread::Builder::new().name("webhook-lookup".to_owned()).spawn(move || drop(sender.send(lookup(&host, port))))?;
        match receiver.recv_timeout(*timeout.after) {
            // A name that is unknown has no address.
            Ok(addresses) => Ok(addresses.unwrap_or_default()),
            Err(RecvTimeoutError::Timeout) => Err(ureq::Error::Timeout(timeout.reason)),
            Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
        }
    }
}

impl Resolver for PublicResolver {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or_else(|| ureq::Error::BadUri("no host".to_owned()))?.trim_matches(['[', ']']).to_owned();
        let usual_port = if uri.scheme_str() == Some("http") { 80 } else { 443 };
        let port = uri.port_u16().unwrap_or(usual_port);
        // The operator chose the proxy, which may be in a private network.
        let is_proxy = self.settings.proxy.as_ref().is_some_and(|proxy| proxy.is_at(&host, port));
        let addresses = self.addresses(host, port, timeout)?;
        let is_foreign = |address: &SocketAddr| !is_permitted(&self.settings, address.ip());
        if !is_proxy && (addresses.is_empty() || addresses.iter().any(is_foreign)) {
            return Err(ureq::Error::Other(Box::new(HostNotPublic)));
        }
        let mut permitted = self.empty();
        for address in addresses.into_iter().take(MAX_ADDRESSES) {
            permitted.push(address);
        }
        if permitted.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(permitted) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const NOT_PUBLIC: &str = "other: the host is not public";

    fn resolver(answers: &'static [&'static [&'static str]], networks: &[&str]) -> (PublicResolver, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let lookup = move |_: &str, port: u16| {
            let answer = answers.get(count.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or_default();
            Ok(answer.iter().map(|address| SocketAddr::new(address.parse().expect("an address"), port)).collect())
        };
        let networks = networks.iter().map(|network| network.parse().expect("a network")).collect();
        let settings = WebhookSettings { networks, ..WebhookSettings::default() };
        (PublicResolver { settings, lookup: Arc::new(lookup) }, asked)
    }

    fn resolve(resolver: &PublicResolver) -> Result<Vec<String>, String> {
        let uri = Uri::from_static("https://example.com/hooks");
        let resolved = resolver.resolve(&uri, &Config::default(), NextTimeout::default());
        resolved.map(|addresses| addresses.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_host_is_looked_up_once_and_each_lookup_is_judged() {
        let (resolver, asked) = resolver(&[&["93.184.216.34"], &["10.0.0.1"], &["::ffff:127.0.0.1"], &["64:ff9b::a00:1"]], &[]);
        assert_eq!(resolve(&resolver), Ok(vec!["93.184.216.34:443".to_owned()]));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        for address in ["10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1"] {
            let error = resolve(&resolver).expect_err("not permitted");
            assert_eq!(error, NOT_PUBLIC, "{address} is not told");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn one_address_that_is_not_public_rejects_the_host() {
        let (resolver, _) = resolver(&[&["93.184.216.34", "169.254.169.254"], &[]], &[]);
        assert_eq!(resolve(&resolver), Err(NOT_PUBLIC.to_owned()));
        assert_eq!(resolve(&resolver), Err(NOT_PUBLIC.to_owned()), "a host without addresses is not told apart");
    }

    #[test]
    fn a_permitted_network_is_connected_to() {
        let (resolver, _) = resolver(&[&["10.0.0.1"], &["10.0.0.1", "10.1.0.1"]], &["10.0.0.0/16"]);
        assert_eq!(resolve(&resolver), Ok(vec!["10.0.0.1:443".to_owned()]));
        assert_eq!(resolve(&resolver), Err(NOT_PUBLIC.to_owned()));
    }
}
