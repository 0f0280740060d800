use std::fs;

use portcullis::audit::redact::{Redactor, is_redacted};
use portcullis::audit::{Event, Log, read, verify};
use portcullis::verdict::{Decision, Finding, Severity};

use crate::support::{Place, decided};

/// Characters that look random and are the same in every run.
struct Noise(u64);

impl Noise {
    fn of(&mut self, alphabet: &str, count: usize) -> String {
        let signs: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            signs[usize::try_from(self.0 >> 33).unwrap() % signs.len()]
        };
        (0..count).map(|_| next()).collect()
    }

    fn alnum(&mut self, count: usize) -> String {
        self.of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", count)
    }

    fn hex(&mut self, count: usize) -> String {
        self.of("0123456789abcdef", count)
    }

    fn upper(&mut self, count: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", count)
    }
}

/// A text with a secret in it, and the secret.
fn planted() -> Vec<(&'static str, String, String)> {
    let mut n = Noise(42);
    let mut all: Vec<(&'static str, String, String)> = Vec::new();
    // `{}` stands for the secret, whose beginning is not written whole: this file is no leak.
    let mut add = |kind, text: &str, secret: String| all.push((kind, text.replace("{}", &secret), secret));
    add("aws access key", "aws configure set aws_access_key_id {}", format!("AK{}{}", "IA", n.upper(16)));
    add("aws secret", "export AWS_SECRET_ACCESS_KEY={}", n.alnum(40));
    add("github classic", "git clone https://oauth2:{}@github.com/a/b.git", format!("gh{}_{}", "p", n.alnum(36)));
    add(
        "github fine",
        "curl -H 'Authorization: token {}' https://api.github.com",
        format!("github{}_{}", "_pat", n.alnum(60)),
    );
    add("gitlab", "glab auth login --token {}", format!("gl{}-{}", "pat", n.alnum(20)));
    add("slack bot", "SLACK={} ./notify.sh", format!("xo{}-{}-{}", "xb", n.of("0123456789", 12), n.alnum(24)));
    add(
        "slack hook",
        "curl -d @m https://hooks.slack.com/services/{}",
        format!("T{}/B{}/{}", n.upper(8), n.upper(8), n.alnum(24)),
    );
    add("stripe", "stripe charges list --api-key {}", format!("sk{}_{}", "_live", n.alnum(24)));
    add("google api", "curl 'https://maps.googleapis.com/x?key={}'", format!("AI{}{}", "za", n.alnum(35)));
    add("google oauth", "echo {} > c", format!("GOC{}-{}", "SPX", n.alnum(28)));
    add(
        "azure storage",
        "az storage ls --connection-string 'AccountName=a;AccountKey={};E=x'",
        format!("{}==", n.alnum(86)),
    );
    add("azure sas", "azcopy cp a 'https://a.blob.core.windows.net/c?sv=2024&sig={}&se=1'", n.alnum(44));
    add("sendgrid", "swaks --auth-password {}", format!("S{}.{}.{}", "G", n.alnum(22), n.alnum(43)));
    add("twilio", "twilio login AC1 --key {}", format!("S{}{}", "K", n.hex(32)));
    add("npm", "npm config set //registry.npmjs.org/:_authToken={}", format!("np{}_{}", "m", n.alnum(36)));
    add("pypi", "twine upload -u __token__ -p {} dist/*", format!("py{}-{}", "pi", n.alnum(100)));
    add("docker hub", "docker login -u me -p {}", format!("dckr{}_{}", "_pat", n.alnum(27)));
    add("openai", "OPENAI_API_KEY={} python a.py", format!("sk-{}-{}", "proj", n.alnum(48)));
    add(
        "anthropic",
        "curl -H 'x-api-key: {}' https://api.anthropic.com",
        format!("sk-{}-api03-{}", "ant", n.alnum(90)),
    );
    add("hugging face", "hf auth login --token {}", format!("h{}_{}", "f", n.alnum(34)));
    add("vault", "VAULT_TOKEN={} vault kv get x", format!("hv{}.{}", "s", n.alnum(90)));
    add("digital ocean", "doctl auth init -t {}", format!("do{}_v1_{}", "p", n.hex(64)));
    add("databricks", "export T={}", format!("da{}{}", "pi", n.hex(32)));
    add("grafana", "echo {}", format!("gl{}_{}_{}", "sa", n.alnum(32), n.hex(8)));
    add(
        "telegram",
        "curl https://api.telegram.org/bot{}/getMe",
        format!("{}:A{}{}", n.of("123456789", 9), "A", n.alnum(33)),
    );
    add(
        "jwt",
        "curl -H 'Authorization: Bearer {}' https://a.example",
        format!("ey{}.ey{}.{}", format_args!("J{}", n.alnum(20)), format_args!("J{}", n.alnum(30)), n.alnum(43)),
    );
    add(
        "private key",
        "cat > k <<E\n-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\nE",
        n.alnum(70),
    );
    add("age key", "echo {} > key.txt", format!("AGE-SECRET{}-1{}", "-KEY", n.upper(58)));
    add("postgres url", "psql postgres://app:{}@db.internal:5432/prod", n.alnum(14));
    add("mongodb url", "mongosh 'mongodb+srv://root:{}@cluster0.example.net/x'", format!("p-{}!", n.alnum(9)));
    add("basic auth", "curl -u admin:{} https://ci.example", n.alnum(11));
    add("basic header", "curl -H 'Authorization: Basic {}' https://a.example", format!("{}==", n.alnum(22)));
    add("mysql", "mysql -u root -p{} -e 'show tables'", n.alnum(12));
    add("pgpassword", "PGPASSWORD={} pg_dump x", format!("hunter{}", n.of("0123456789", 2)));
    add("password option", "sqlplus --password {} x", format!("Corr3ct-{}", n.alnum(6)));
    add("sshpass", "sshpass -p '{}' ssh root@10.0.0.1", n.alnum(10));
    add("json", "curl -d '{\"user\":\"a\",\"password\":\"{}\"}' https://a.example", format!("s3cr3t{}", n.alnum(6)));
    add("yaml", "cat > v.yml <<E\ndb:\n  password: {}\nE", n.alnum(16));
    add("dotenv", "printf 'STRIPE_WEBHOOK_SECRET={}\\n' >> .env", n.alnum(32));
    add("netrc", "printf 'machine a.example login me password {}' > ~/.netrc", n.alnum(12));
    add("cookie", "curl -H 'Cookie: theme=dark; sessionid={}' https://a.example", n.alnum(32));
    add("shopify", "echo {}", format!("shp{}_{}", "at", n.hex(32)));
    add("linear", "echo {}", format!("li{}_api_{}", "n", n.alnum(40)));
    add("sentry", "echo {}", format!("sn{}_{}", "trys", n.alnum(80)));
    add("discord", "echo {}", format!("M{}.{}.{}", n.alnum(25), n.alnum(6), n.alnum(38)));
    add("code", "cat > a.py <<E\nclient = C(api_key=\"{}\")\nE", n.alnum(24));
    add("query", "curl 'https://a.example/x?user=1&access_token={}&b=2'", n.alnum(20));
    all
}

#[test]
fn planted_secrets_of_forty_kinds_reach_no_byte_of_the_log() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    let all = planted();
    assert!(all.len() > 40, "{} kinds", all.len());
    for (kind, text, secret) in &all {
        let Event::Decided(mut record) = decided(&format!("call-{kind}"), Decision::Deny) else {
            panic!("no decision")
        };
        record.call.arguments.insert("command".into(), text.as_str().into());
        // What quotes the command, and what was made of a single word of it.
        let finding = Finding::new("test", Severity::Warn, format!("`{text}` does things"));
        record.verdict.notes.push(finding);
        record.verdict.notes.push(Finding::new("test.word", Severity::Note, format!("about the word {secret}")));
        log.append(&Event::Decided(record)).unwrap();
    }
    let written = fs::read_to_string(place.log()).unwrap();
    let leaked: Vec<&str> = all
        .iter()
        .filter(|(_, _, secret)| {
            let escaped = serde_json::to_string(secret).unwrap();
            written.contains(secret.as_str()) || written.contains(escaped.trim_matches('"'))
        })
        .map(|(kind, ..)| *kind)
        .collect();
    assert_eq!(leaked, [""; 0], "secrets of these kinds are in the log");
    assert!(verify(&place.log()).unwrap().sound());
    for record in read::records(&place.log()).unwrap().skip(1) {
        let line = serde_json::to_string(&record.unwrap()).unwrap();
        assert!(is_redacted(&line), "nothing was redacted in {line}");
    }
}

#[test]
fn a_secret_is_hidden_wherever_an_argument_says_that_it_is_one() {
    let place = Place::new();
    let log = Log::open(&place.state).unwrap();
    let Event::Decided(mut record) = decided("call-named", Decision::Deny) else { panic!("no decision") };
    let arguments = serde_json::json!({
        "env": { "DB_PASSWORD": "tulip fields" }, "headers": [["Authorization", "Bearer abcd1234efgh5678"]],
        "argv": ["deploy", "--token", "violet-9321"], "auth": { "client_secret": "aa bb cc dd" },
    });
    record.call.arguments = serde_json::from_value(arguments).unwrap();
    log.append(&Event::Decided(record)).unwrap();
    let written = fs::read_to_string(place.log()).unwrap();
    for secret in ["tulip", "abcd1234efgh5678", "violet-9321", "aa bb"] {
        assert!(!written.contains(secret), "{secret} is in the log: {written}");
    }
}

#[test]
fn equal_secrets_are_seen_to_be_equal_and_other_gateways_markers_differ() {
    let (place, other) = (Place::new(), Place::new());
    let ours = Redactor::new(&place.state);
    let text = format!("PGPASSWORD={} psql", Noise(7).alnum(16));
    let again = format!("psql --password {}", Noise(7).alnum(16));
    let digest = |text: &str| text.split(':').nth(2).unwrap().split(']').next().unwrap().to_owned();
    assert_eq!(digest(&ours.text(&text).unwrap()), digest(&ours.text(&again).unwrap()));
    let theirs = Redactor::new(&other.state);
    assert_ne!(digest(&ours.text(&text).unwrap()), digest(&theirs.text(&text).unwrap()));
}

#[test]
fn ordinary_text_is_left_as_it_is() {
    let place = Place::new();
    let redactor = Redactor::new(&place.state);
    for text in [
        "git commit -m 'rotate the token and the password'",
        "grep -rn password src/ | head",
        "let token = next_token(&mut lexer);",
        "password: String,",
        "def login(self, password: str, token: Optional[str] = None):",
        "docker run -e API_KEY=$API_KEY app",
        "curl -H \"Authorization: Bearer $TOKEN\" https://a.example",
        "export PASSWORD=\"${DB_PASSWORD:?missing}\"",
        "API_KEY=<your key> ./run.sh",
        "kubectl get secret db-credentials -o yaml",
        "cargo test token:: --lib",
        "sk-learn is spelled scikit-learn; task-manager-configuration-service",
        "https://github.com/rust-lang/rust/commit/3f2504e04f8911d39a0c0305e82c3301",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "uuid 550e8400-e29b-41d4-a716-446655440000",
        "ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519",
        "token = os.environ['GITHUB_TOKEN']",
        "secretKeyRef: { name: db, key: password }",
        "openssl rand -base64 32 > secret.key",
        "npm install jsonwebtoken --save",
        "mysql -u root -p -e 'show databases'",
        "rsync -avz -e ssh user@host:/src/ /dst/",
        "max_tokens: 4096",
        "pytest -k 'test_password_reset or test_token_refresh'",
        "const { token } = await auth.getToken();",
    ] {
        assert_eq!(redactor.text(text).unwrap(), text, "nothing here is a secret");
    }
}

#[test]
fn hardly_any_ordinary_command_is_taken_for_a_secret() {
    let place = Place::new();
    let redactor = Redactor::new(&place.state);
    // Another file of ordinary lines can be tried out.
    let file = std::env::var("PORTCULLIS_TEST_TEXT").unwrap_or_else(|_| "tests/cases/commands.tsv".into());
    let lines: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    let hit: Vec<&String> = lines.iter().filter(|line| is_redacted(&redactor.text(line).unwrap())).collect();
    for line in &hit {
        println!("{}", redactor.text(line).unwrap());
    }
    println!("{} of {} lines", hit.len(), lines.len());
    assert!(hit.len() * 200 < lines.len(), "{} of {} lines were redacted: {hit:#?}", hit.len(), lines.len());
}
