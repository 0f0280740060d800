//! URLs among the arguments of tools that reach who knows where: by what values look like.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::{Host, Url};

/// URLs of one call that are looked at.
pub const MOST_URLS: usize = 1024;
/// A longer text is no URL that anything would take.
const LONGEST: usize = 16 << 10;

/// A value that is a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlFact {
    pub scheme: String,
    /// In its one spelling: lower case, punycode, numbers as dotted ones. Empty where the URL names none.
    pub host: String,
    /// Whether it leads to this machine or a private network, as far as the text tells.
    pub private: bool,
}

/// The URLs among the arguments, one of each; and whether there were more than are looked at.
pub fn urls(arguments: &Map<String, Value>) -> (Vec<UrlFact>, bool) {
    let mut found: Vec<UrlFact> = Vec::new();
    let mut open: Vec<&Value> = arguments.values().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                if let Some(fact) = read(text)
                    && !found.contains(&fact)
                {
                    if found.len() >= MOST_URLS {
                        return (found, true);
                    }
                    found.push(fact);
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found.sort_by(|a, b| (&a.host, &a.scheme).cmp(&(&b.host, &b.scheme)));
    (found, false)
}

/// A URL with an authority, in any spelling that browsers and libraries take.
fn read(text: &str) -> Option<UrlFact> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    // What begins with two slashes takes its scheme from where it is used.
    let whole = if text.starts_with("//") { format!("https:{text}") } else { text.to_owned() };
    let (scheme, _) = whole.split_once(':')?;
    let named = scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.\t\n\r".contains(c));
    if !named || whole.len() > LONGEST {
        return None;
    }
    let url = Url::parse(&whole).ok()?;
    let host = url.host()?;
    let private = match &host {
        Host::Ipv4(ip) => !is_public(IpAddr::V4(*ip)),
        Host::Ipv6(ip) => !is_public(IpAddr::V6(*ip)),
        Host::Domain(name) => is_private_name(name),
    };
    let host = match host {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => ip.to_string(),
    };
    Some(UrlFact { scheme: url.scheme().to_owned(), host, private })
}

/// Names that are set apart for this machine and its network (RFC 6761, RFC 6762, the reserved `internal`), and names
/// without a dot.
fn is_private_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    !name.contains('.') || matches!(last, "localhost" | "local" | "internal" | "lan" | "home" | "corp" | "intranet")
        || name.ends_with(".home.arpa")
        // A number that a resolver may read as an address.
        || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether an address is one of the public network (the special purpose registries of IANA, RFC 6890).
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let special = matches!(
        (a, b, c),
        (0, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _) | (240..=255, ..)
    );
    !(special
        || ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || ip.is_multicast())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let v4 = |a: u16, b: u16| {
        let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        // Mapped and translated addresses are the ones inside.
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => v4(a, b),
        // Nothing else is public but 2000::/3, less what is set apart in it.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: Value) -> Vec<(String, String, bool)> {
        let (facts, more) = urls(json!({ "x": value }).as_object().unwrap());
        assert!(!more);
        facts.into_iter().map(|fact| (fact.scheme, fact.host, fact.private)).collect()
    }

    #[test]
    fn a_url_is_found_in_every_spelling_with_where_it_leads() {
        for (text, scheme, host, private) in [
            ("https://Example.COM./a?b", "https", "example.com", false),
            (" \u{9}https://example.com", "https", "example.com", false),
            ("ht\ntps://example.com", "https", "example.com", false),
            ("http:example.com", "http", "example.com", false),
            ("https:\\\\example.com", "https", "example.com", false),
            ("//example.com/x", "https", "example.com", false),
            ("https://user:pw@example.com:8443/", "https", "example.com", false),
            ("https://example.com@evil.example/", "https", "evil.example", false),
            ("postgres://db.example/x", "postgres", "db.example", false),
            ("http://127.0.0.1/", "http", "127.0.0.1", true),
            ("http://2130706433/", "http", "127.0.0.1", true),
            ("http://0x7f.1/", "http", "127.0.0.1", true),
            ("http://0177.0.0.1/", "http", "127.0.0.1", true),
            ("http://[::ffff:169.254.169.254]/", "http", "::ffff:169.254.169.254", true),
            ("http://169.254.169.254/latest", "http", "169.254.169.254", true),
            ("http://localhost:3000", "http", "localhost", true),
            ("http://a.localhost.", "http", "a.localhost", true),
            ("http://metadata.google.internal/", "http", "metadata.google.internal", true),
            ("http://printer/", "http", "printer", true),
            ("https://\u{ff45}xample.com/", "https", "example.com", false),
        ] {
            assert_eq!(found(json!(text)), [(scheme.to_owned(), host.to_owned(), private)], "{text}");
        }
        assert_eq!(
            found(json!([{ "deep": ["https://a.example"] }, "https://b.example", "https://a.example"])).len(),
            2
        );
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "hello",
            "a: b",
            "see https://example.com",
            "src/main.rs",
            "C:/x",
            "mailto:a@b.example",
            "data:,x",
            "12:30",
        ] {
            assert_eq!(found(json!(text)), [], "{text}");
        }
    }

    #[test]
    fn only_public_addresses_are_public() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.0.8",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "::7f00:1",
            "fec0::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.0.1",
            "172.32.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "2001:4860::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
