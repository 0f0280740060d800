//! Values of `portcullis.toml` whose mistakes are told in words for whoever writes the file, and with their place in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use jiff::SignedDuration;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::call::Digest;

/// A loopback address: `127.0.0.1:8460`, `[::1]:8460`, `localhost:8460`, or the port alone.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| format!("`{text}` is no address with a port: write for instance 127.0.0.1:8460"))
}

pub(super) fn listen<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SocketAddr>, D::Error> {
    address(&String::deserialize(value)?).map(Some).map_err(Error::custom)
}

/// A length of time, such as `10m`.
pub(super) fn duration<'de, D: Deserializer<'de>>(value: D) -> Result<Option<SignedDuration>, D::Error> {
    let text = String::deserialize(value)?;
    match text.parse::<SignedDuration>() {
        Ok(duration) if duration.is_positive() => Ok(Some(duration)),
        Ok(_) => Err(Error::custom(format!("`{text}` is over before it begins: write for instance \"10m\""))),
        Err(_) => {
            Err(Error::custom(format!("`{text}` is no length of time: write for instance \"10m\" or \"1h 30m\"")))
        }
    }
}

/// The SHA-256 of a token.
pub(super) fn token<'de, D: Deserializer<'de>>(value: D) -> Result<Digest, D::Error> {
    let text = String::deserialize(value)?;
    text.parse().map_err(|_| {
        Error::custom(
            "a token is named by its SHA-256, 64 hexadecimal digits: `printf %s \"$TOKEN\" | sha256sum` prints them",
        )
    })
}

pub(super) fn token_if_any<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Digest>, D::Error> {
    token(value).map(Some)
}

/// An absolute path, where there is one.
pub(super) fn absolute<'de, D: Deserializer<'de>>(value: D) -> Result<Option<PathBuf>, D::Error> {
    checked(PathBuf::deserialize(value)?).map(Some)
}

pub(super) fn all_absolute<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<PathBuf>, D::Error> {
    Vec::<PathBuf>::deserialize(value)?.into_iter().map(checked).collect()
}

fn checked<E: Error>(path: PathBuf) -> Result<PathBuf, E> {
    if path.is_absolute() {
        return Ok(path);
    }
    let tilde = if path.starts_with("~") { ", and `~` is not put in here" } else { "" };
    Err(E::custom(format!("`{}` is no absolute path: write one that begins with `/`{tilde}", path.display())))
}
