//! What inline code does with values that the scanner of its calls does not follow: the whole environment sent away, and
//! fetched text handed to an evaluator as a function. Looked for in the code's text, without its blanks.

use crate::facts::command::shell::walk::Walker;

/// The whole environment, as a value.
const ENVIRONMENT: &[&str] = &[
    "dict(os.environ)",
    "str(os.environ)",
    "dumps(os.environ",
    "os.environ.items()",
    "urlencode(os.environ",
    "(process.env)",
    "...process.env",
    "body:process.env",
    "env.to_h",
    "env.to_a",
    "env.inspect",
    "json(env)",
    "%env",
    "json_encode($_env)",
    "http_build_query($_env)",
    "getenv()",
];

/// Ways to the network.
const NETWORK: &[&str] = &[
    "urlopen",
    "requests.",
    "httpx.",
    "http.client",
    "aiohttp",
    "fetch(",
    "axios",
    "https.request",
    "http.request",
    "net::http",
    "net/http",
    "faraday",
    "lwp",
    "socket",
    "file_get_contents('http",
    "file_get_contents(\"http",
    "curl_exec",
    "xmlhttprequest",
    "httparty",
    "got(",
    "got.post",
];

/// An evaluator that is handed what a promise gives.
const EVALUATED: &[&str] = &[".then(eval)", "eval(await", ".then(function)", "newfunction(await", ".then(x=>eval(x))"];

pub(crate) fn watch(walker: &mut Walker<'_>, code: &str) {
    let plain: String = code.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    let any = |words: &[&str]| words.iter().any(|word| plain.contains(word));
    if any(ENVIRONMENT) && any(NETWORK) {
        walker.event("send-secret");
    }
    if any(EVALUATED) && any(NETWORK) {
        walker.event("fetch-and-run");
    }
}
