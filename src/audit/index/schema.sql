CREATE TABLE position (volume INTEGER NOT NULL, offset INTEGER NOT NULL, prev TEXT NOT NULL) STRICT;
INSERT INTO position VALUES (0, 0, '');

CREATE TABLE call (
    seq       INTEGER PRIMARY KEY,
    id        TEXT NOT NULL,
    time      INTEGER NOT NULL,
    session   TEXT NOT NULL,
    agent     TEXT NOT NULL,
    sub_agent TEXT,
    origin    TEXT NOT NULL,
    tool      TEXT NOT NULL,
    subject   TEXT NOT NULL,
    cwd       TEXT NOT NULL,
    verdict   TEXT NOT NULL,
    answer    TEXT NOT NULL,
    rule      TEXT,
    grant_id  TEXT,
    pending   TEXT,
    policies  TEXT,
    outcome   TEXT,
    code      INTEGER,
    ms        INTEGER,
    output_bytes INTEGER
) STRICT;
CREATE INDEX call_id ON call (id);
CREATE INDEX call_time ON call (time);
CREATE INDEX call_session ON call (session, seq);
CREATE INDEX call_agent ON call (agent, seq);
CREATE INDEX call_tool ON call (tool, seq);
CREATE INDEX call_answer ON call (answer, seq);

CREATE TABLE finding (
    seq      INTEGER NOT NULL,
    stage    TEXT,
    rule     TEXT NOT NULL,
    severity TEXT NOT NULL,
    message  TEXT NOT NULL
) STRICT;
CREATE INDEX finding_seq ON finding (seq);
CREATE INDEX finding_rule ON finding (rule, seq);

CREATE TABLE path (seq INTEGER NOT NULL, path TEXT NOT NULL, access TEXT NOT NULL, scope TEXT NOT NULL) STRICT;
CREATE INDEX path_seq ON path (seq);
CREATE INDEX path_path ON path (path, seq);

CREATE TABLE host (seq INTEGER NOT NULL, host TEXT NOT NULL) STRICT;
CREATE INDEX host_seq ON host (seq);
CREATE INDEX host_host ON host (host, seq);

CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    call_id TEXT,
    actor   TEXT,
    text    TEXT NOT NULL
) STRICT;
CREATE INDEX event_call ON event (call_id) WHERE call_id IS NOT NULL;

CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = "unicode61");

CREATE VIEW calls AS SELECT
    seq, id, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, session, agent, sub_agent, origin, tool,
    subject, cwd, verdict, answer, rule, grant_id, pending, policies, outcome, code, ms, output_bytes
FROM call;
CREATE VIEW findings AS SELECT finding.*, call.tool, call.session, call.agent, call.answer
FROM finding JOIN call USING (seq);
CREATE VIEW paths AS SELECT path.*, call.tool, call.session, call.agent, call.answer FROM path JOIN call USING (seq);
CREATE VIEW hosts AS SELECT host.*, call.tool, call.session, call.agent, call.answer FROM host JOIN call USING (seq);
CREATE VIEW events AS SELECT
    seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, kind, call_id, actor, text
FROM event;
CREATE VIEW sessions AS SELECT
    session, agent, min(time) AS first, max(time) AS last, count(*) AS calls,
    sum(answer = 'allow') AS allowed, sum(answer LIKE 'ask%') AS asked, sum(answer = 'deny') AS denied
FROM calls GROUP BY session, agent;
