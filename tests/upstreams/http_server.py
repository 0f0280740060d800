"""An MCP server over streamable HTTP, for tests: it prints its port, and answers by one message or by a stream of them.

Every head that it gets is written to standard error, a line of JSON each, so that a test sees what reached it.
"""

import http.server
import json
import sys

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {"name": "echo", "description": "Says what it is told.", "inputSchema": TEXT},
    {"name": "stream", "description": "Answers by a stream.", "inputSchema": TEXT},
    {"name": "broken", "description": "Breaks off.", "inputSchema": TEXT},
    {"name": "away", "description": "Is elsewhere.", "inputSchema": TEXT},
    {"name": "large", "description": "Says too much.", "inputSchema": TEXT},
    {"name": "html", "description": "Answers with a page.", "inputSchema": TEXT},
]


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        seen = {name.lower(): value for name, value in self.headers.items()}
        sys.stderr.write(json.dumps({"method": message.get("method"), "headers": seen}) + "\n")
        sys.stderr.flush()
        if self.headers.get("Authorization") != "Bearer upstream-secret":
            self.answer(401, "text/plain", b"who are you")
            return
        id, method = message.get("id"), message.get("method")
        if id is None or method is None:
            self.answer(202, "text/plain", b"")
            return
        headers = {}
        if method == "initialize":
            headers["Mcp_Session_Id"] = "a-session"
            info = {"name": "fixture-http", "version": "1"}
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        else:
            name = message["params"]["name"]
            said = message["params"].get("arguments", {}).get("text", "")
            result = {"content": [{"type": "text", "text": said}]}
            whole = json.dumps({"jsonrpc": "2.0", "id": id, "result": result})
            if name == "stream":
                note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
                self.answer(200, "text/event-stream", ("data: %s\n\nid: 7\ndata: %s\n\n" % (note, whole)).encode())
                return
            if name == "broken":
                self.answer(200, "text/event-stream", b"data: {\"jsonrpc\"\n\n")
                return
            if name == "away":
                self.answer(302, "text/plain", b"", Location="http://169.254.169.254/")
                return
            if name == "large":
                self.answer(200, "application/json", b"\"" + b"x" * (17 << 20) + b"\"")
                return
            if name == "html":
                self.answer(200, "text/html", b"<html>")
                return
        self.answer(200, "application/json", json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode(), **headers)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_address[1], flush=True)
server.serve_forever()
