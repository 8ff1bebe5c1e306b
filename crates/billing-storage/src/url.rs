//! The database address. A custom parser ensures that an ambiguous address never creates a file.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The address of a database: `sqlite://PATH` or `postgres://…`. Displayed without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(Address);

#[derive(Clone, PartialEq, Eq)]
enum Address {
    Sqlite(PathBuf),
    Postgres(String),
}

/// The reason why a text is not a database address. Messages never repeat the text, because it may contain a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DatabaseUrlError {
    /// The scheme is missing or unknown.
    #[error(
        "the database URL must begin with sqlite://, postgres:// or postgresql://, such as sqlite://data/usage-billing.sqlite3"
    )]
    Scheme,
    /// `sqlite://` has no path.
    #[error(
        "a database URL that begins with sqlite:// must contain the path of a file, such as sqlite://data/usage-billing.sqlite3"
    )]
    Path,
    /// `sqlite://` has parameters after the path.
    #[error("a database URL that begins with sqlite:// must contain only a path, without ? # or control characters")]
    Parameters,
    /// `postgres://` has no server, or invalid characters.
    #[error(
        "a database URL that begins with postgres:// must contain a server and a database, such as postgres://user@host/database"
    )]
    Server,
}

/// The address under which servers reach a node of a distributed database, if it isn't the node's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The name and port of the node in the database.
    node: String,
    host: String,
    port: u16,
}

/// The reason why a text is not the address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be NAME:PORT=HOST:PORT, such as worker-1:5432=10.0.0.7:5433")]
pub struct NodeAddressError;

impl NodeAddress {
    /// Parses `NAME:PORT=HOST:PORT`: the node as the database names it, and its address.
    ///
    /// # Errors
    /// Returns [`NodeAddressError`] if a part is missing.
    pub fn parse(text: &str) -> Result<Self, NodeAddressError> {
        fn split(text: &str) -> Result<(&str, u16), NodeAddressError> {
            let (host, port) = text.rsplit_once(':').ok_or(NodeAddressError)?;
            let host = host.trim_start_matches('[').trim_end_matches(']');
            if host.is_empty() || host.contains(['/', '@', '?', ' ']) {
                return Err(NodeAddressError);
            }
            Ok((host, port.parse().map_err(|_| NodeAddressError)?))
        }
        let (node, address) = text.split_once('=').ok_or(NodeAddressError)?;
        let ((name, node_port), (host, port)) = (split(node)?, split(address)?);
        Ok(Self { node: format!("{name}:{node_port}"), host: host.to_owned(), port })
    }

    pub(crate) fn node(&self) -> &str {
        &self.node
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> i32 {
        i32::from(self.port)
    }
}

impl DatabaseUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// Returns [`DatabaseUrlError`] if the address is invalid.
    pub fn parse(text: &str) -> Result<Self, DatabaseUrlError> {
        let Some((scheme, rest)) = text.split_once("://") else { return Err(DatabaseUrlError::Scheme) };
        match scheme {
            "sqlite" if rest.is_empty() || rest.ends_with('/') => Err(DatabaseUrlError::Path),
            "sqlite" if rest.contains(|c: char| matches!(c, '?' | '#') || c.is_control()) => Err(DatabaseUrlError::Parameters),
            "sqlite" => Ok(Self(Address::Sqlite(PathBuf::from(rest)))),
            "postgres" | "postgresql"
                if rest.trim_matches('/').is_empty() || rest.contains(|c: char| c.is_control() || c == ' ') =>
            {
                Err(DatabaseUrlError::Server)
            }
            "postgres" | "postgresql" => Ok(Self(Address::Postgres(text.to_owned()))),
            _ => Err(DatabaseUrlError::Scheme),
        }
    }

    /// Returns the file of a SQLite database.
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Address::Sqlite(path) => Some(path),
            Address::Postgres(_) => None,
        }
    }

    /// Returns the address of a PostgreSQL database, as libpq expects it.
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.0 {
            Address::Sqlite(_) => None,
            Address::Postgres(url) => Some(url),
        }
    }

    /// Returns the address of the same database on another server, with the same user and parameters.
    pub(crate) fn at(&self, host: &str, port: i32) -> Self {
        let Address::Postgres(url) = &self.0 else { return self.clone() };
        let start = url.find("://").map_or(0, |at| at + 3);
        let end = url[start..].find(['/', '?']).map_or(url.len(), |at| start + at);
        let user = url[start..end].rfind('@').map_or("", |at| &url[start..=start + at]);
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        Self(Address::Postgres(format!("{}{user}{host}:{port}{}", &url[..start], &url[end..])))
    }

    /// Returns a message about this address without its password.
    pub(crate) fn redact(&self, message: &str) -> String {
        match self.password() {
            Some(password) if !password.is_empty() => message.replace(password, "***"),
            Some(_) | None => message.to_owned(),
        }
    }

    fn password(&self) -> Option<&str> {
        let (_, rest) = self.server()?.split_once("://")?;
        let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
        let in_authority = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password);
        let in_query = || {
            let (_, query) = rest.split_once('?')?;
            query.split('&').find_map(|parameter| parameter.strip_prefix("password="))
        };
        in_authority.or_else(in_query)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Address::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Address::Postgres(url) => match self.password() {
                // The password is replaced by position, not by text, because the same text may occur elsewhere.
                Some(password) => {
                    let at = password.as_ptr() as usize - url.as_ptr() as usize;
                    write!(f, "{}***{}", &url[..at], &url[at + password.len()..])
                }
                None => f.write_str(url),
            },
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_an_address_is_refused_with_one_sentence() {
        let rows = [
            ("", DatabaseUrlError::Scheme),
            ("data/usage.sqlite3", DatabaseUrlError::Scheme),
            ("sqlite:data/usage.sqlite3", DatabaseUrlError::Scheme),
            ("sqlite3://data/usage.sqlite3", DatabaseUrlError::Scheme),
            ("SQLITE://data/usage.sqlite3", DatabaseUrlError::Scheme),
            ("mysql://localhost/usage", DatabaseUrlError::Scheme),
            ("postgre://localhost/usage", DatabaseUrlError::Scheme),
            ("postgres:localhost", DatabaseUrlError::Scheme),
            (":memory:", DatabaseUrlError::Scheme),
            ("sqlite://", DatabaseUrlError::Path),
            ("sqlite://data/", DatabaseUrlError::Path),
            ("sqlite://data/a.sqlite3?mode=ro", DatabaseUrlError::Parameters),
            ("sqlite://a\0b", DatabaseUrlError::Parameters),
            ("postgres://", DatabaseUrlError::Server),
            ("postgres:///", DatabaseUrlError::Server),
            ("postgres://a b/c", DatabaseUrlError::Server),
        ];
        for (text, error) in rows {
            assert_eq!(DatabaseUrl::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_node_may_have_another_address_than_its_name() {
        let address = NodeAddress::parse("worker-1:5432=10.0.0.7:5433").expect("an address");
        assert_eq!((address.node(), address.host(), address.port()), ("worker-1:5432", "10.0.0.7", 5433));
        assert_eq!(NodeAddress::parse("w:1=[::1]:2").expect("an address").host(), "::1");
        for wrong in ["", "worker-1:5432", "worker-1=10.0.0.7:1", "worker-1:1=10.0.0.7", "a:1=:2", "a:1=h:70000", "a:1=u@h:2"] {
            assert_eq!(NodeAddress::parse(wrong), Err(NodeAddressError), "{wrong}");
        }
    }

    #[test]
    fn another_server_has_the_same_database_user_and_parameters() {
        for (url, other) in [
            ("postgres://host/usage", "postgres://worker:5433/usage"),
            ("postgres://me:s3@c@host:5432/usage?sslmode=require", "postgres://me:s3@c@worker:5433/usage?sslmode=require"),
        ] {
            assert_eq!(DatabaseUrl::parse(url).expect(url).at("worker", 5433), DatabaseUrl::parse(other).expect(other));
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let rows = [
            ("sqlite://data/usage.sqlite3", "sqlite://data/usage.sqlite3"),
            ("sqlite:///srv/usage.sqlite3", "sqlite:///srv/usage.sqlite3"),
            ("postgres://host/usage", "postgres://host/usage"),
            ("postgres://me@host/usage", "postgres://me@host/usage"),
            ("postgres://me:s3cret@host:5432/usage", "postgres://me:***@host:5432/usage"),
            ("postgresql://me:p@ss:word@host/usage?sslmode=require", "postgresql://me:***@host/usage?sslmode=require"),
            ("postgres://host/usage?user=me&password=s3cret", "postgres://host/usage?user=me&password=***"),
            ("postgres://e:e@host/e", "postgres://e:***@host/e"),
        ];
        for (text, shown) in rows {
            let url = DatabaseUrl::parse(text).expect(text);
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
        }
        let url = DatabaseUrl::parse("postgres://me:s3cret@host/usage").expect("an address");
        assert_eq!(url.redact("no s3cret here"), "no *** here");
    }
}
