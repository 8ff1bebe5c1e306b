//! Why no response arrived: an outcome, and a sentence for the caller.
//!
//! The sentences are fixed. The texts of libraries can contain addresses and the names of certificates, so a caller could use an
//! endpoint to look up the hosts of a private network.

use std::io::{self, ErrorKind};

use billing_domain::webhook::AttemptOutcome;
use rustls::CertificateError;
use ureq::{Error, Timeout};

use crate::resolver::HostNotPublic;

/// A request without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestFailure {
    pub(crate) outcome: AttemptOutcome,
    pub(crate) reason: &'static str,
}

/// The settings of the server do not permit the URL.
pub(crate) const NOT_PERMITTED: RequestFailure =
    failure(AttemptOutcome::NotSent, "the settings of the server do not permit the URL");
/// No secret can be decrypted.
pub(crate) const NO_SECRET: RequestFailure = failure(AttemptOutcome::NotSent, "the secret of the endpoint is unreadable");

const fn failure(outcome: AttemptOutcome, reason: &'static str) -> RequestFailure {
    RequestFailure { outcome, reason }
}

impl RequestFailure {
    /// Returns the failure that an error of the HTTP client stands for.
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::Timeout(Timeout::Resolve) => failure(AttemptOutcome::TimedOut, "the look-up of the host took too long"),
            Error::Timeout(Timeout::Connect) => failure(AttemptOutcome::TimedOut, "the host accepted no connection in time"),
            Error::Timeout(_) => failure(AttemptOutcome::TimedOut, "no response arrived in time"),
            Error::Other(reason) if reason.is::<HostNotPublic>() => {
                failure(AttemptOutcome::AddressNotPublic, "the host is not public")
            }
            Error::Rustls(error) => Self::of_tls(error),
            Error::Tls(_) | Error::TlsRequired => failure(AttemptOutcome::TlsFailed, "the encryption failed"),
            Error::BadUri(_) | Error::Http(_) => failure(AttemptOutcome::NotSent, "the URL cannot be requested"),
            Error::Io(error) => Self::of_io(error),
            Error::Protocol(_) | Error::LargeResponseHeader(..) => {
                failure(AttemptOutcome::Unreachable, "the response is not valid HTTP")
            }
            Error::HostNotFound => failure(AttemptOutcome::Unreachable, "the proxy of the server is not found"),
            Error::ConnectProxyFailed(_) => {
                failure(AttemptOutcome::Unreachable, "the proxy of the server did not connect to the host")
            }
            _ => failure(AttemptOutcome::Unreachable, "no connection could be opened, or it broke off"),
        }
    }

    fn of_io(error: &io::Error) -> Self {
        if let Some(error) = error.get_ref().and_then(|reason| reason.downcast_ref::<rustls::Error>()) {
            return Self::of_tls(error);
        }
        match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => failure(AttemptOutcome::TimedOut, "no response arrived in time"),
            ErrorKind::ConnectionRefused => failure(AttemptOutcome::Unreachable, "the host refused the connection"),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                failure(AttemptOutcome::Unreachable, "no route leads to the host")
            }
            _ => failure(AttemptOutcome::Unreachable, "no connection could be opened, or it broke off"),
        }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        let reason = match error {
            rustls::Error::InvalidCertificate(reason) => match reason {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate of the host has expired",
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "the certificate of the host is not valid yet"
                }
                CertificateError::UnknownIssuer => "the certificate of the host has an unknown issuer",
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    "the certificate is for another host"
                }
                CertificateError::Revoked => "the certificate of the host is revoked",
                _ => "the certificate of the host is not accepted",
            },
            rustls::Error::InvalidMessage(_) => "the host does not answer with TLS",
            _ => "the encryption failed",
        };
        failure(AttemptOutcome::TlsFailed, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_reason_contains_what_a_library_says_about_a_host() {
        let secret = "10.20.30.40";
        let name = rustls::pki_types::ServerName::try_from("example.com").expect("a name");
        let presented = vec![format!("IpAddress({secret})")];
        let other_host = CertificateError::NotValidForNameContext { expected: name, presented };
        let errors = [
            Error::BadUri(secret.to_owned()),
            Error::ConnectProxyFailed(format!("403 {secret}")),
            Error::Other(secret.into()),
            Error::Io(io::Error::other(secret)),
            Error::Io(io::Error::new(ErrorKind::ConnectionRefused, secret)),
            Error::Io(io::Error::new(ErrorKind::InvalidData, rustls::Error::General(secret.to_owned()))),
            Error::Rustls(rustls::Error::InvalidCertificate(other_host)),
        ];
        for error in errors {
            assert!(error.to_string().contains(secret), "the library says it: {error}");
            let RequestFailure { reason, .. } = RequestFailure::of(&error);
            assert!(!reason.contains(secret) && !reason.is_empty(), "{reason}");
        }
    }

    #[test]
    fn the_outcome_is_that_of_the_cause() {
        let refused = io::Error::from(ErrorKind::ConnectionRefused);
        let tls = |error: rustls::Error| Error::Io(io::Error::new(ErrorKind::InvalidData, error));
        for (error, outcome, part) in [
            (Error::Timeout(Timeout::Global), AttemptOutcome::TimedOut, "no response"),
            (Error::Timeout(Timeout::Connect), AttemptOutcome::TimedOut, "no connection"),
            (Error::Io(ErrorKind::WouldBlock.into()), AttemptOutcome::TimedOut, "no response"),
            (Error::Io(refused), AttemptOutcome::Unreachable, "refused"),
            (Error::Other(Box::new(HostNotPublic)), AttemptOutcome::AddressNotPublic, "not public"),
            (tls(rustls::Error::InvalidCertificate(CertificateError::Expired)), AttemptOutcome::TlsFailed, "expired"),
            (tls(rustls::Error::DecryptError), AttemptOutcome::TlsFailed, "encryption"),
            (Error::TlsRequired, AttemptOutcome::TlsFailed, "encryption"),
            (Error::HostNotFound, AttemptOutcome::Unreachable, "proxy"),
        ] {
            let found = RequestFailure::of(&error);
            assert_eq!(found.outcome, outcome, "{error}");
            assert!(found.reason.contains(part), "{error}: {}", found.reason);
        }
    }
}
