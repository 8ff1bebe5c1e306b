//! PostgreSQL over TLS: the certificate of a private authority identifies the server, and no other server is accepted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::cluster::Cluster;
use acceptance::{binary, tools};
use tempfile::TempDir;

/// Creates an authority. Returns its certificate and its key.
fn authority(directory: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (directory.join(format!("{name}.crt")), directory.join(format!("{name}.key")));
    let subject = format!("/CN={name}");
    let arguments = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", &subject, "-keyout"];
    tools::succeed(Command::new("openssl").args(arguments).arg(&key).arg("-out").arg(&certificate));
    (certificate, key)
}

/// Gives a server the certificate of a host, and requires TLS for every connection.
fn encrypt(cluster: &Cluster, host: &str, (authority, key): (&Path, &Path), directory: &Path) {
    let (data, request) = (cluster.data(), directory.join("server.csr"));
    let (certificate, own_key) = (data.join("server.crt"), data.join("server.key"));
    let subject = format!("/CN={host}");
    let arguments = ["req", "-newkey", "rsa:2048", "-nodes", "-subj", &subject, "-keyout"];
    tools::succeed(Command::new("openssl").args(arguments).arg(&own_key).arg("-out").arg(&request));
    let mut sign = Command::new("openssl");
    sign.args(["x509", "-req", "-days", "2", "-CAcreateserial", "-in"]).arg(&request).arg("-CA").arg(authority);
    tools::succeed(sign.arg("-CAkey").arg(key).arg("-out").arg(&certificate));
    cluster.give(&certificate);
    cluster.give(&own_key);
    let settings = data.join("postgresql.conf");
    let with_tls = format!("{}\nssl = on\n", fs::read_to_string(&settings).expect("the settings"));
    fs::write(settings, with_tls).expect("the settings");
    fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n").expect("the authentication rules");
}

#[test]
fn a_server_is_known_by_its_certificate_and_no_other_is_talked_to() {
    let directory = TempDir::new().expect("a directory");
    let (ours, key) = authority(directory.path(), "ours");
    let (theirs, _) = authority(directory.path(), "theirs");
    let mut cluster = Cluster::initialized();
    encrypt(&cluster, "localhost", (&ours, &key), directory.path());
    cluster.up();
    let migrate = |host: &str, parameters: &str| {
        let url = format!("{}?{parameters}", cluster.url(host));
        binary::run(&["migrate"], &[("USAGE_BILLING_DATABASE_URL", &url)])
    };
    let verified = |certificate: &Path| format!("sslmode=verify-full&sslrootcert={}", certificate.display());
    let refused: [(&str, String, &str); 3] = [
        ("localhost", verified(&theirs), "certificate verify failed"),
        ("127.0.0.1", verified(&ours), "does not match host name"),
        ("localhost", "sslmode=disable".to_owned(), "no pg_hba.conf entry"),
    ];
    for (host, parameters, why) in refused {
        let finished = migrate(host, &parameters);
        assert_eq!(finished.code, Some(2), "{parameters}: {}{}", finished.stdout, finished.stderr);
        assert!(finished.stderr.contains(why), "{parameters}: {}", finished.stderr);
    }

    let finished = migrate("localhost", &verified(&ours));

    assert_eq!((finished.code, finished.stdout.starts_with("Applied ")), (Some(0), true), "{}", finished.stderr);
}
