#!/usr/bin/env bash
# expect: allow
# Installs a unit for the app.
unit=app.service
cat > "$unit" <<'UNIT'
[Service]
ExecStart=/srv/app/bin/app
Restart=always
UNIT
systemd-analyze verify "$unit" || true
diff "$unit" units/app.service || true
