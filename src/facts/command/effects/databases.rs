//! Clients of databases: the statements that they are given, as far as these destroy data. Statements are read by their
//! words outside of quotes, so that a text that only speaks of a table is none.

use super::files;
use super::target::Kinds;
use crate::facts::command::notes::Act;
use crate::facts::command::shell::walk::Walker;
use crate::facts::command::words::text::FETCHED;

/// Clients that take SQL, and tools that pass it on.
pub(crate) const SQL: &[&str] = &[
    "psql",
    "pgcli",
    "mysql",
    "mariadb",
    "mycli",
    "sqlite3",
    "sqlite",
    "duckdb",
    "sqlcmd",
    "clickhouse-client",
    "clickhouse",
    "cqlsh",
    "cockroach",
    "usql",
    "bq",
    "snowsql",
    "snow",
    "influx",
    "turso",
    "isql",
    "osql",
    "sqlplus",
    "tsql",
    "trino",
    "presto",
    "beeline",
    "hive",
    "impala-shell",
    "heroku",
    "wrangler",
    "supabase",
    "prisma",
    "pscale",
    "dbt",
    "databricks",
    "mssql-cli",
    "ysqlsh",
    "monetdb",
    "mclient",
    "vsql",
    "athenacli",
    "litecli",
    "spark-sql",
    "ksql",
    "invoke-sqlcmd",
    "cypher-shell",
];

const MONGO: &[&str] = &["mongosh", "mongo", "arangosh"];
const REDIS: &[&str] = &["redis-cli", "valkey-cli", "keydb-cli"];

/// What a statement can drop.
const THINGS: &[&str] = &[
    "table",
    "tables",
    "database",
    "schema",
    "view",
    "index",
    "column",
    "role",
    "user",
    "keyspace",
    "owned",
    "function",
    "type",
    "extension",
    "sequence",
    "materialized",
    "policy",
    "trigger",
    "tablespace",
    "constraint",
    "collection",
    "stream",
    "pipe",
    "warehouse",
    "partition",
    "publication",
    "subscription",
    "server",
    "login",
    "procedure",
    "measurement",
    "series",
    "retention",
    "foreign",
    "external",
    "dictionary",
    "bucket",
    "if",
];

/// Calls of the Mongo shell, without spaces and in lower case.
const MONGO_CALLS: &[&str] = &[
    ".dropdatabase(",
    ".drop(",
    ".deletemany({})",
    ".remove({})",
    ".dropcollection(",
    ".dropindexes(",
    ".dropuser(",
    ".shutdownserver(",
    ".dropallusersfromdatabase(",
    ".updatemany({},",
    ".dropsearchindex(",
    "._dropdatabase(",
    "._drop(",
];

/// Calls of frameworks' own languages that empty a table, or take it away, without spaces and in lower case.
const MODEL_CALLS: &[&str] = &[
    ".delete_all",
    ".destroy_all",
    "objects.all().delete()",
    "drop_table(",
    "drop_table:",
    "schema::drop",
    "::truncate()",
    ".truncate()",
    "drop_database(",
    ".dropdatabase(",
    ".drop_all(",
    "deletemany({})",
    "deletemany()",
];

/// Calls that hand a statement to a database.
const STATEMENT_CALLS: &[&str] = &[
    "execute",
    "executescript",
    "query",
    "exec",
    "raw",
    "run",
    "executemany",
    "statement",
    "unprepared",
    "do",
    "sql",
    "$executerawunsafe",
    "$executeraw",
    "exec_query",
    "execute_sql",
    "select_all",
    "prepare",
    "text",
    "run_sql",
    "cmd",
];

const REDIS_WORDS: &[&str] = &["flushall", "flushdb", "shutdown", "swapdb", "replicaof", "slaveof"];

pub(crate) fn is_client(name: &str) -> bool {
    SQL.contains(&name) || MONGO.contains(&name) || REDIS.contains(&name)
}

/// Whether code in some language destroys what a database holds: through a framework's models, or with a statement in a
/// text that it hands to a call for that.
pub(crate) fn code_destroys(code: &str) -> bool {
    let lower = code.to_lowercase();
    let plain: String = lower.chars().filter(|c| !c.is_whitespace()).collect();
    if MODEL_CALLS.iter().any(|call| plain.contains(call)) {
        return true;
    }
    if !["drop", "truncate", "delete", "update"].iter().any(|word| lower.contains(word)) {
        return false;
    }
    handed(&lower).into_iter().any(sql)
}

/// The texts in quotes that calls for statements take first.
fn handed(code: &str) -> Vec<&str> {
    let mut texts = Vec::new();
    for (at, quote) in code.char_indices().filter(|(_, c)| matches!(c, '"' | '\'' | '`')) {
        let before =
            code.get(..at).unwrap_or_default().trim_end_matches(['(', ' ', 'r', 'f', 'b', '"', '\'', '`', '\\']);
        let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).map_or(0, |i| i + 1);
        let called = before.get(start..).unwrap_or_default();
        if !STATEMENT_CALLS.contains(&called) || texts.len() > 64 {
            continue;
        }
        let rest = code.get(at + 1..).unwrap_or_default().trim_start_matches(quote);
        texts.push(rest.split(quote).next().unwrap_or_default());
    }
    texts
}

/// Whether a statement makes the server run a program, or write and read files of its own. A program that it names in
/// full (`COPY ... FROM PROGRAM`) is judged itself.
fn runs_program(text: &str) -> bool {
    const CALLS: &[&str] = &[
        "xp_cmdshell",
        "sys_exec(",
        "sys_eval(",
        "pg_read_file(",
        "pg_read_binary_file(",
        "lo_export(",
        "into outfile",
        "into dumpfile",
        "load_file(",
    ];
    let lower = text.to_lowercase();
    CALLS.iter().any(|call| lower.contains(call))
}

pub(crate) fn acts(walker: &mut Walker<'_>, name: &str, args: &[String]) -> Vec<Act> {
    let mut acts = files::acts(walker, name, args);
    let mut texts: Vec<String> = args.to_vec();
    let embedded = matches!(name, "sqlite3" | "sqlite" | "duckdb" | "litecli");
    if let Some(input) = walker.env.stdin.as_deref() {
        if input.contains(FETCHED) && !REDIS.contains(&name) {
            acts.push(Act::new("fetch-and-run", Kinds::default()));
        }
        texts.push(input.to_owned());
    }
    if embedded {
        let database: Vec<String> = args.iter().filter(|arg| !arg.starts_with('-')).take(1).cloned().collect();
        acts.extend(files::reads(walker, "read", &database));
    }
    // Files of statements that the command itself wrote.
    for arg in args {
        let path = arg.strip_prefix("-f").or_else(|| arg.split_once('=').map(|(_, path)| path)).unwrap_or(arg);
        let path = path.strip_prefix(".read ").or_else(|| path.strip_prefix("\\i ")).unwrap_or(path);
        let target = walker.target(path);
        texts.extend(walker.files.get(&target.path).cloned());
    }
    // What a database in memory holds is the command's own.
    let operand = args.iter().find(|arg| !arg.starts_with('-'));
    if embedded && operand.is_some_and(|operand| operand.starts_with(":memory:") || operand == "file::memory:") {
        return acts;
    }
    let destroys = if MONGO.contains(&name) {
        if texts.iter().any(|text| mongo_all(text)) {
            acts.push(Act::new("bulk", Kinds::default()));
        }
        texts.iter().any(|text| mongo(text))
    } else if REDIS.contains(&name) {
        walker.env.stdin.as_deref().is_some_and(redis) || texts.iter().any(|text| redis_script(text))
    } else {
        if texts.iter().any(|text| runs_program(text)) {
            acts.push(Act::new("db-program", Kinds::default()));
        }
        texts.iter().any(|text| sql(text))
    };
    if destroys {
        acts.push(Act::new("db-destroy", Kinds::default()));
    }
    acts
}

fn mongo(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    MONGO_CALLS.iter().any(|call| plain.contains(call))
}

/// Every database, one after the other.
fn mongo_all(text: &str) -> bool {
    let lower = text.to_lowercase();
    let loops = lower.contains(".foreach(") || lower.contains("for (") || lower.contains("for(");
    loops && lower.contains(".dropdatabase(") && (lower.contains("listdatabases") || lower.contains("getdbnames"))
}

/// A script of Redis that calls a command which empties it.
fn redis_script(text: &str) -> bool {
    let lower = text.to_lowercase();
    lower.contains("redis.") && ["flushall", "flushdb"].iter().any(|word| lower.contains(word))
}

fn redis(text: &str) -> bool {
    text.lines().any(|line| {
        line.split_whitespace().next().is_some_and(|word| REDIS_WORDS.contains(&word.to_ascii_lowercase().as_str()))
    })
}

/// Whether a text holds an SQL statement that destroys data.
pub(crate) fn sql(text: &str) -> bool {
    statements(text).iter().any(|words| destroys(words))
}

fn destroys(words: &[String]) -> bool {
    let at = |i: usize| words.get(i).map(String::as_str).unwrap_or_default();
    let narrowed = |from: usize| {
        let rest = words.get(from..).unwrap_or_default();
        match rest.iter().position(|word| word == "where" || word == "using" || word == "limit") {
            // A condition that always holds narrows nothing.
            Some(found) => !matches!(
                rest.get(found + 1..).unwrap_or_default().iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
                ["true" | "1"] | ["1", "=", "1"] | ["1=1"]
            ),
            None => false,
        }
    };
    let leading = at(0);
    let server = ["pg_terminate_backend", "pg_drop_replication_slot"];
    if words.iter().any(|word| server.contains(&word.as_str()))
        || (leading == "reset" && matches!(at(1), "master" | "replica" | "slave" | "binary"))
        || (leading == "purge" && matches!(at(1), "binary" | "master"))
    {
        return true;
    }
    if matches!(leading, "explain" | "show" | "describe" | "comment") && at(1) != "analyze" {
        return false;
    }
    for i in 0..words.len() {
        let found = match at(i) {
            "drop" => THINGS.contains(&at(i + 1)),
            // A graph's nodes, all of them.
            "detach" => at(i + 1) == "delete" && !words.iter().any(|word| word == "where" || word.contains('{')),
            "truncate" => i == 0 || at(i + 1) == "table" || matches!(at(i - 1), "then" | "begin"),
            // ClickHouse deletes with `ALTER TABLE t DELETE WHERE ...`.
            "delete" if at(i + 1) == "where" && leading == "alter" => !narrowed(i + 1),
            "delete" => at(i + 1) == "from" && !narrowed(i + 2) || (i == 0 && words.len() == 2 && at(1) != "from"),
            "update" => i == 0 && words.iter().any(|word| word == "set") && !narrowed(1),
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

/// The words of each statement in lower case, without comments; a quoted text is one word that means nothing.
fn statements(text: &str) -> Vec<Vec<String>> {
    let text = text.strip_prefix("--").and_then(|rest| rest.split_once('=')).map_or(text, |(_, statement)| statement);
    // `-cDROP TABLE x`
    let text = if text.starts_with('-') && !text.starts_with("--") { text.get(2..).unwrap_or_default() } else { text };
    let mut statements = vec![Vec::new()];
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let end = |word: &mut String, statements: &mut Vec<Vec<String>>| {
        if !word.is_empty()
            && let Some(words) = statements.last_mut()
        {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '-' if chars.peek() == Some(&'-') => while chars.next_if(|c| *c != '\n').is_some() {},
            '/' if chars.peek() == Some(&'*') => {
                let mut last = ' ';
                for c in chars.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            '\'' => {
                let quoted: String = chars.by_ref().take_while(|c| *c != '\'').collect();
                end(&mut word, &mut statements);
                let last = statements.last().and_then(|words| words.last()).map(String::as_str);
                if matches!(last, Some("execute" | "exec" | "immediate" | "sp_executesql")) {
                    // A statement made of text.
                    statements.push(quoted.split_whitespace().map(str::to_lowercase).collect());
                    statements.push(Vec::new());
                }
                word.push('\'');
                end(&mut word, &mut statements);
            }
            ';' => {
                end(&mut word, &mut statements);
                statements.push(Vec::new());
            }
            c if c.is_whitespace() || matches!(c, '(' | ')' | ',') => end(&mut word, &mut statements),
            c => word.extend(c.to_lowercase()),
        }
    }
    end(&mut word, &mut statements);
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_destroy_are_told_from_those_that_speak_of_it() {
        for text in [
            "DROP TABLE users",
            "begin; delete from users; commit",
            "TRUNCATE users CASCADE;",
            "update users set admin = true",
            "-- tidy\ndrop /* now */ schema public cascade",
            "delete from t where 1=1",
            "alter table t drop column c",
            "with x as (select 1) delete from t",
            "if exists (select 1) drop table t",
            "--command=drop database app",
            "do $$ begin execute 'drop table x'; end $$",
            "match (n) detach delete n",
            "alter table t delete where 1",
            "select pg_terminate_backend(pid) from pg_stat_activity",
            "reset master",
        ] {
            assert!(sql(text), "{text}");
        }
        for text in [
            "select 'drop table x'",
            "delete from sessions where expires < now()",
            "update t set a = 1 where id = 2",
            "select truncate(1.5, 0)",
            "SELECT * FROM dropped WHERE deleted",
            "explain delete from t",
            "-- drop table x",
            "insert into log values ('delete from x')",
            "create table drops (id int)",
            "execute 'select 1'",
            "match (n) where n.old detach delete n",
        ] {
            assert!(!sql(text), "{text}");
        }
    }
    #[test]
    fn code_that_hands_statements_on_is_told_from_text() {
        for code in [
            "User.delete_all",
            "ActiveRecord::Base.connection.execute(\"DROP TABLE users\")",
            "User.objects.all().delete()",
            "sqlite3.connect('a.db').execute('delete from t')",
            "cur.execute(\"\"\"TRUNCATE users\"\"\")",
            "client.query(`DROP DATABASE x`)",
        ] {
            assert!(code_destroys(code), "{code}");
        }
        for code in [
            "print('drop table x')",
            "User.objects.filter(old=True).delete()",
            "db.execute('select 1')",
            "cur.execute('delete from t where id = 1')",
            "log.info(\"delete from users\")",
        ] {
            assert!(!code_destroys(code), "{code}");
        }
    }
}
