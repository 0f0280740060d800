//! What secrets look like.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::Regex;

/// A kind of secret. Its pattern is tried only where one of its words stands in the text.
pub(super) struct Kind {
    pub id: &'static str,
    /// Without regard to case.
    words: &'static [&'static str],
    /// The group `s`, or else the whole match, is the secret.
    pattern: &'static str,
    pub value: Value,
    compiled: OnceLock<Option<Regex>>,
}

/// What else must be true of the text that a pattern found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// The form alone says it.
    Formed,
    /// Whatever stands there, unless it is a reference or a placeholder.
    Given,
    /// The same, and it looks made up: letters and digits or signs, no word of a language.
    Random,
}

impl Kind {
    pub(super) fn regex(&self) -> Option<&Regex> {
        // All patterns are compiled by a test.
        self.compiled.get_or_init(|| Regex::new(self.pattern).ok()).as_ref()
    }
}

const fn kind(id: &'static str, words: &'static [&'static str], pattern: &'static str, value: Value) -> Kind {
    Kind { id, words, pattern, value, compiled: OnceLock::new() }
}

use Value::{Formed, Given, Random};

/// The kinds, those with a form of their own first.
pub(super) static KINDS: [Kind; 50] = [
    kind(
        "private-key",
        &["private key"],
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?P<s>.+?)(?:-----END|\z)",
        Formed,
    ),
    kind("age-key", &["age-secret-key-"], r"(?i)AGE-SECRET-KEY-1[0-9A-Z]{40,}", Formed),
    kind(
        "aws-access-key",
        &["akia", "asia", "abia", "acca", "aroa", "aida"],
        r"\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[0-9A-Z]{16}\b",
        Formed,
    ),
    kind(
        "aws-secret",
        &["aws", "secret_access", "secretaccess", "session_token"],
        r#"(?i)aws.{0,30}?(?:secret|session|token).{0,30}?[=:\s'"]+(?P<s>[A-Za-z0-9/+=]{40,})"#,
        Formed,
    ),
    kind(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,})",
        Formed,
    ),
    kind(
        "gitlab-token",
        &[
            "glpat-",
            "gldt-",
            "glrt-",
            "glptt-",
            "glcbt-",
            "glsoat-",
            "glft-",
            "glagent-",
            "glimt-",
            "gloas-",
            "gr1348941",
        ],
        r"\b(?:gl(?:pat|dt|rt|ptt|cbt|soat|ft|agent|imt|oas|ffct)-[A-Za-z0-9_.\-]{20,}|GR1348941[A-Za-z0-9_\-]{20})",
        Formed,
    ),
    kind(
        "slack-token",
        &["xox", "xapp-"],
        r"(?i)\b(?:xox[abeoprs](?:\.xox[bp])?-[0-9A-Za-z\-]{10,}|xapp-\d-[0-9A-Za-z\-]{10,})",
        Formed,
    ),
    kind(
        "slack-webhook",
        &["hooks.slack.com", "discord", "webhook.office.com", "hooks.zapier.com"],
        r"(?i)(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)|(?:discord|discordapp)\.com/api/webhooks|webhook\.office\.com/webhookb2|hooks\.zapier\.com/hooks/catch)/(?P<s>[A-Za-z0-9_@+/\-]{15,})",
        Formed,
    ),
    kind(
        "stripe-key",
        &["sk_live", "sk_test", "rk_live", "rk_test", "sk_prod", "rk_prod", "whsec_"],
        r"\b(?:[sr]k_(?:live|test|prod)_[0-9A-Za-z]{10,}|whsec_[0-9A-Za-z+/=]{24,})",
        Formed,
    ),
    kind("google-api-key", &["aiza"], r"\bAIza[0-9A-Za-z_\-]{30,}", Formed),
    kind(
        "google-oauth",
        &["gocspx-", "ya29.", "1//0"],
        r"(?:\bGOCSPX-[0-9A-Za-z_\-]{20,}|\bya29\.[0-9A-Za-z_\-.]{20,}|\b1//0[0-9A-Za-z_\-]{30,})",
        Formed,
    ),
    kind(
        "azure-storage-key",
        &["accountkey=", "sharedaccesskey="],
        r"(?i)(?:Account|SharedAccess)Key=(?P<s>[A-Za-z0-9+/]{30,}={0,2})",
        Formed,
    ),
    kind("azure-sas", &["sig="], r"(?i)[?&;]sig=(?P<s>[A-Za-z0-9%+/=_\-]{20,})", Formed),
    kind("azure-client-secret", &["8q~", "7q~"], r"\b[A-Za-z0-9_~.]{3}[78]Q~[A-Za-z0-9_~.\-]{30,40}", Formed),
    kind("sendgrid-key", &["sg."], r"\bSG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}", Formed),
    kind(
        "twilio-key",
        &["sk", "twilio"],
        r"\b(?:SK[0-9a-f]{32}|(?i:twilio.{0,30}?[=:\s'\x22]+)(?P<s>[0-9a-f]{32}))\b",
        Formed,
    ),
    kind(
        "mail-key",
        &["key-", "-us", "xkeysib-", "xsmtpsib-", "re_"],
        r"\b(?:key-[0-9a-z]{32}|[0-9a-f]{32}-us\d{1,2}|x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,})\b",
        Formed,
    ),
    kind(
        "npm-token",
        &["npm_", "_authtoken"],
        r"(?:\bnpm_[A-Za-z0-9]{30,}|_authToken\s*=\s*(?P<s>[^\s$]\S{7,}))",
        Formed,
    ),
    kind("pypi-token", &["pypi-"], r"\bpypi-[A-Za-z0-9_\-]{40,}", Formed),
    kind(
        "package-token",
        &["rubygems_", "cio", "oy2", "dckr_", "clojars_"],
        r"\b(?:rubygems_[0-9a-f]{40,}|cio[A-Za-z0-9]{32}\b|oy2[a-z0-9]{43}|dckr_(?:pat|oat)_[A-Za-z0-9_\-]{20,}|CLOJARS_[a-z0-9]{40,})",
        Formed,
    ),
    kind(
        "openai-key",
        &["sk-"],
        r"\bsk-(?:proj-|svcacct-|admin-|None-|ant-(?:api|admin|oat)\d\d-|or-v1-|lf-)?[A-Za-z0-9_\-]{20,}",
        Random,
    ),
    kind(
        "ai-key",
        &["hf_", "api_org_", "r8_", "gsk_", "pplx-", "xai-", "fw_", "lsv2_", "nvapi-", "tgp_v1_", "csk-", "jina_"],
        r"\b(?:hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{40,}|fw_[A-Za-z0-9]{20,}|lsv2_(?:pt|sk)_[A-Za-z0-9_]{30,}|nvapi-[A-Za-z0-9_\-]{40,}|tgp_v1_[A-Za-z0-9_\-]{30,}|csk-[a-z0-9]{40,}|jina_[A-Za-z0-9]{40,})",
        Formed,
    ),
    kind(
        "cloud-token",
        &[
            "dop_v1_",
            "doo_v1_",
            "dor_v1_",
            "hrku-",
            "dapi",
            "hvs.",
            "hvb.",
            "hvr.",
            ".atlasv1.",
            "pul-",
            "fo1_",
            "fm1",
            "fm2_",
            "nfp_",
            "rnd_",
            "sbp_",
            "sb_secret_",
            "pscale_",
            "ltai",
            "akid",
            "aqvn",
            "t1.",
        ],
        r"\b(?:do[opr]_v1_[0-9a-f]{40,}|HRKU-[A-Za-z0-9_\-]{30,}|dapi[0-9a-f]{32}(?:-\d)?|hv[sbr]\.[A-Za-z0-9_\-]{20,}|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=\-]{40,}|pul-[0-9a-f]{40}|fo1_[A-Za-z0-9_\-]{40,}|fm[12][a-z]?_[A-Za-z0-9+/=]{40,}|nfp_[A-Za-z0-9]{30,}|rnd_[A-Za-z0-9]{24,}|sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_\-]{20,}|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=\-]{30,}|LTAI[A-Za-z0-9]{12,24}|AKID[A-Za-z0-9]{32}|AQVN[A-Za-z0-9_\-]{35,38}|t1\.[A-Z0-9a-z_\-]+={0,2}\.[A-Z0-9a-z_\-]{80,})",
        Formed,
    ),
    kind(
        "observability-key",
        &[
            "glsa_", "glc_", "nrak-", "nrjs-", "nrii-", "nraa-", "sntrys_", "sntryu_", "phc_", "phx_", "squ_", "sqp_",
            "sqa_", "dt0c01.",
        ],
        r"\b(?:glsa_[A-Za-z0-9]{20,}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/=]{32,}|NR(?:AK|JS|II|AA)-[A-Za-z0-9_\-]{19,}|sntry[su]_[A-Za-z0-9+/=_]{30,}|ph[cx]_[A-Za-z0-9]{40,}|sq[upa]_[0-9a-f]{40}|dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64})",
        Formed,
    ),
    kind(
        "commerce-key",
        &[
            "shpat_",
            "shpss_",
            "shpca_",
            "shppa_",
            "sq0",
            "eaaa",
            "rzp_",
            "flwseck",
            "shippo_",
            "ezak",
            "eztk",
            "access_token$production$",
            "duffel_",
        ],
        r"\b(?:shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|sq0[a-z]{3}-[0-9A-Za-z_\-]{22,}|EAAA[A-Za-z0-9_\-]{50,}|rzp_(?:live|test)_[A-Za-z0-9]{14,}|FLWSECK(?:_TEST)?-[0-9A-Za-z]{12,}|shippo_(?:live|test)_[0-9a-f]{40}|EZ[AT]K[A-Za-z0-9]{54}|access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32}|duffel_(?:test|live)_[A-Za-z0-9_\-=]{43})",
        Formed,
    ),
    kind(
        "work-token",
        &[
            "lin_api_",
            "lin_oauth_",
            "secret_",
            "ntn_",
            "figd_",
            "atatt3",
            "atbb",
            "atctt3",
            "ccipat_",
            "ccipro_",
            "dp.",
            "pmak-",
            "pnu_",
            "rdme_",
            "tfp_",
            "cfpat-",
            "bkua_",
            "ops_ey",
            "dapi",
            "airtable",
            "sl.",
            "ico-",
            "fio-u-",
            "aio_",
            "shcb",
            "bcrypt",
            "patk",
        ],
        r"\b(?:lin_(?:api|oauth)_[A-Za-z0-9]{32,}|secret_[A-Za-z0-9]{43}\b|ntn_[A-Za-z0-9]{40,}|figd_[A-Za-z0-9_\-]{30,}|AT(?:ATT3|CTT3|BB)[A-Za-z0-9_=\-]{20,}|CCIP(?:AT|RO)_[A-Za-z0-9_]{30,}|dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_\-]+\.)?[A-Za-z0-9]{40,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|pnu_[A-Za-z0-9]{36}|rdme_[a-z0-9]{70}|tfp_[A-Za-z0-9_.\-]{40,}|CFPAT-[A-Za-z0-9_\-]{40,}|bkua_[0-9a-z]{40}|ops_ey[A-Za-z0-9_\-=+/]{60,}|sl\.[A-Za-z0-9_\-]{100,}|ico-[A-Za-z0-9]{32}|fio-u-[A-Za-z0-9_=\-]{64}|aio_[A-Za-z0-9]{28})",
        Formed,
    ),
    kind("airtable-token", &["pat"], r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b", Formed),
    kind("telegram-token", &[":aa"], r"\b\d{8,10}:AA[A-Za-z0-9_\-]{32,34}", Formed),
    kind("discord-token", &["."], r"\b[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}\b", Formed),
    kind(
        "social-token",
        &["aaaaaaaaaa", "eaac", "eaag", "eaab", "igq"],
        r"\b(?:A{10,}[A-Za-z0-9%]{40,}|EAA[A-Z][A-Za-z0-9]{60,}|IGQ[A-Za-z0-9_\-]{80,})",
        Formed,
    ),
    kind(
        "mapbox-token",
        &["sk.eyj", "pk.eyj", "tk.eyj"],
        r"\b[spt]k\.eyJ[A-Za-z0-9_\-]{20,}\.[A-Za-z0-9_\-]{10,}",
        Formed,
    ),
    kind(
        "jwt",
        &["eyj"],
        r"\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?(?:\.[A-Za-z0-9_\-]*){0,2}",
        Formed,
    ),
    kind("okta-token", &["ssws"], r"(?i)SSWS\s+(?P<s>[A-Za-z0-9_\-]{20,})", Formed),
    kind("wallet-key", &["xprv", "yprv", "zprv"], r"\b[xyz]prv[1-9A-HJ-NP-Za-km-z]{70,}", Formed),
    kind(
        "url-password",
        &["://"],
        r#"(?i)\b[a-z][a-z0-9+.\-]{1,30}://[^\s/@:'"`<>\\]{0,100}:(?P<s>[^\s/@'"`<>\\]{1,}(?:[^\s'"`<>\\/]*[^\s/'"`<>\\@])?)@[^\s'"`<>]"#,
        Given,
    ),
    kind("url-token", &["://"], r#"(?i)\bhttps?://(?P<s>[^\s/@:'"`<>\\]{16,})(?::x-oauth-basic)?@[a-z0-9]"#, Random),
    kind(
        "authorization",
        &[
            "authorization",
            "bearer",
            "basic ",
            "x-api-key",
            "x-auth-token",
            "private-token",
            "api-key",
            "x-vault-token",
            "cookie",
        ],
        r#"(?i)\b(?:proxy-)?authorization['"]?\s*[:=]\s*['"]?(?:(?:bearer|basic|token|digest|negotiate|apikey|ssws|aws4-hmac-sha256)\s+)?(?P<s>[^\s'",;\\]{6,})"#,
        Given,
    ),
    kind("bearer", &["bearer"], r#"(?i)\bbearer\s+(?P<s>[A-Za-z0-9_~+/.=\-]{12,})"#, Random),
    kind(
        "header-key",
        &[
            "api-key",
            "apikey",
            "auth-token",
            "private-token",
            "vault-token",
            "job-token",
            "x-token",
            "access-token",
            "auth-key",
        ],
        r#"(?i)\b(?:x-)?[a-z0-9\-]*(?:api-?key|auth-token|auth-key|private-token|vault-token|job-token|access-token|x-token)['"]?\s*:\s*['"]?(?P<s>[^\s'",;\\]{6,})"#,
        Given,
    ),
    kind(
        "cookie",
        &["cookie"],
        r#"(?i)\b(?:set-)?cookie['"]?\s*:\s*['"]?[^'"\n]*?\b[\w\-]*(?:sess|auth|token|sid|jwt)[\w\-]*=(?P<s>[^\s;'"]{8,})"#,
        Given,
    ),
    kind(
        "user-password",
        &["-u", "--user", "--proxy-user"],
        r#"(?:^|\s)(?:-u\s?|--user[ =]|--proxy-user[ =])['"]?[A-Za-z0-9_.@+\-]{1,64}:(?P<s>[^\s'":]{3,})"#,
        Given,
    ),
    kind(
        "password-option",
        &[
            "pass",
            "pwd",
            "secret",
            "token",
            "api-key",
            "apikey",
            "api_key",
            "auth-key",
            "access-key",
            "private-key",
            "client-secret",
            "credential",
        ],
        r#"(?i)(?:^|[\s'"])--?(?:[a-z0-9]+[\-_])*(?:password|passwd|passphrase|pass|pwd|secret|token|api[\-_]?key|access[\-_]?key|secret[\-_]?key|auth[\-_]?key|account[\-_]?key|private[\-_]?key|client[\-_]?secret|credential|credentials)(?:=|\s+)['"]?(?P<s>[^\s'"\-][^\s'"]{3,})"#,
        Given,
    ),
    kind("sshpass", &["sshpass"], r#"\bsshpass\s+(?:-v\s+)?-p\s*['"]?(?P<s>[^\s'"]{3,})"#, Given),
    kind(
        "client-password",
        &[
            "mysql",
            "mariadb",
            "docker",
            "podman",
            "redis-cli",
            "htpasswd",
            "openssl",
            "smbclient",
            "ldap",
            "7z",
            "zip",
            "curl",
            "az ",
            "helm",
            "sqlcmd",
            "mongo",
            "rabbitmq",
            "sudo",
            "vault",
            "skopeo",
            "buildah",
            "unzip",
            "mysqldump",
        ],
        r#"(?:\bmysql(?:dump|admin|import)?\b[^\n|;&]*?\s-p|\bmariadb(?:-dump)?\b[^\n|;&]*?\s-p|\b(?:docker|podman|helm|skopeo|buildah|az)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p\s+|\bredis-cli\b[^\n|;&]*?\s-a\s+|\bmongo(?:sh|dump|restore)?\b[^\n|;&]*?\s-p\s+|\bsqlcmd\b[^\n|;&]*?\s-P\s*|\bldap(?:search|modify|add|passwd|delete)\b[^\n|;&]*?\s-w\s+|\b(?:un)?zip\b[^\n|;&]*?\s-P\s+|\b7z\b[^\n|;&]*?\s-p|\bhtpasswd\b[^\n|;&]*?\s-[a-z]*b[a-z]*\s+\S+\s+\S+\s+)['"]?(?P<s>[^\s'"\-][^\s'"]{2,})"#,
        Given,
    ),
    kind("netrc", &["machine ", "login "], r#"(?i)\blogin\s+\S+\s+password\s+(?P<s>[^\s'"\\]{3,})"#, Given),
    kind(
        "pipe-password",
        &["--password-stdin", "passwd", "chpasswd", "sudo -s"],
        r#"(?:echo|printf)\s+(?:-n\s+)?(?:'%s'\s+)?['"]?(?P<s>[^\s'"|$]{4,})['"]?\s*\|\s*(?:sudo\s+-S|\S*\s*(?:docker|podman|helm|skopeo|buildah|oras|crane)\b[^|\n]*--password-stdin|(?:sudo\s+)?chpasswd|passwd\s+--stdin)"#,
        Given,
    ),
    kind("openssl-pass", &["pass:"], r#"\bpass:(?P<s>[^\s'"]{3,})"#, Given),
    // NAME=value, as in the environment, in files of settings and in the query of a URL.
    kind(
        "assigned",
        ASSIGNED,
        r#"(?i)(?:^|[^A-Za-z0-9$])(?P<n>[A-Za-z0-9_.\-]*(?:passwd|password|passphrase|passcode|pwd|secret|token|api[_\-]?key|apikey|access[_\-]?key|secret[_\-]?key|private[_\-]?key|auth[_\-]?key|account[_\-]?key|signing[_\-]?key|encryption[_\-]?key|master[_\-]?key|service[_\-]?key|subscription[_\-]?key|app[_\-]?key|license[_\-]?key|client[_\-]?secret|credentials?|connection[_\-]?string|_auth|_pass|_pw))=(?P<q>['"]?)(?P<s>[^\s'"\\&;,)<>|]{4,})"#,
        Given,
    ),
    // name: "value" and name = "value", as in code, JSON and YAML.
    kind(
        "quoted",
        ASSIGNED,
        r#"(?i)[A-Za-z0-9_.\-]*(?:passwd|password|passphrase|passcode|pwd|secret|token|api[_\-]?key|apikey|access[_\-]?key|secret[_\-]?key|private[_\-]?key|auth[_\-]?key|account[_\-]?key|signing[_\-]?key|encryption[_\-]?key|master[_\-]?key|service[_\-]?key|subscription[_\-]?key|app[_\-]?key|license[_\-]?key|client[_\-]?secret|credentials?|_auth|_pass|_pw)\\?['"]?\]?\s*(?::=|=>|[:=,])\s*\\?['"](?P<s>[^'"\n\\]{6,}?)\\?['"]"#,
        Random,
    ),
    kind(
        "yaml",
        ASSIGNED,
        r##"(?im)^[ \t\-]*[A-Za-z0-9_.\-]*(?:passwd|password|passphrase|secret|token|api[_\-]?key|apikey|access[_\-]?key|secret[_\-]?key|auth[_\-]?key|account[_\-]?key|client[_\-]?secret|_pass)\s*[:=]\s+(?P<s>[^\s'"#{}\[\](),;$<>]{8,})[ \t]*(?:#.*)?$"##,
        Random,
    ),
];

const ASSIGNED: &[&str] = &["pass", "pwd", "secret", "token", "key", "credential", "_auth", "_pw", "connection"];

/// Every word of every kind, and which kinds it speaks of.
pub(super) struct Words {
    automaton: Option<AhoCorasick>,
    kinds: Vec<usize>,
}

impl Words {
    /// The kinds to try in a text, in their order.
    pub(super) fn kinds(&self, text: &[u8]) -> Vec<&'static Kind> {
        let mut found = vec![false; KINDS.len()];
        match &self.automaton {
            Some(automaton) => {
                for word in automaton.find_overlapping_iter(text) {
                    if let Some(kind) = self.kinds.get(word.pattern().as_usize())
                        && let Some(found) = found.get_mut(*kind)
                    {
                        *found = true;
                    }
                }
            }
            // Without it, everything is tried.
            None => found.fill(true),
        }
        KINDS.iter().zip(found).filter(|(_, found)| *found).map(|(kind, _)| kind).collect()
    }
}

pub(super) static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let all = || KINDS.iter().enumerate().flat_map(|(at, kind)| kind.words.iter().map(move |word| (at, *word)));
    let automaton = AhoCorasick::builder().ascii_case_insensitive(true).build(all().map(|(_, word)| word)).ok();
    Words { automaton, kinds: all().map(|(at, _)| at).collect() }
});

/// Names of arguments whose value is a secret, whatever it looks like.
pub(super) static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let names = r"(?i)(?:^|[_\-.]|[a-z])(?:password|passwd|passphrase|passcode|secret|api[_\-]?key|apikey|access[_\-]?key|secret[_\-]?key|private[_\-]?key|auth[_\-]?(?:key|token)|access[_\-]?token|refresh[_\-]?token|id[_\-]?token|bearer[_\-]?token|session[_\-]?token|client[_\-]?secret|credentials?|authorization|signing[_\-]?key|encryption[_\-]?key)$";
    let short = r"(?i)^(?:pwd|pass|token|auth)$";
    Regex::new(&format!("{names}|{short}")).ok()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_every_kind_has_words() {
        for kind in &KINDS {
            assert!(kind.regex().is_some(), "{}: {:?}", kind.id, Regex::new(kind.pattern));
            assert!(!kind.words.is_empty(), "{} is never tried", kind.id);
        }
        assert!(WORDS.automaton.is_some() && NAMES.is_some());
    }
}
