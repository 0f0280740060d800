#!/usr/bin/env bash
# expect: ask
# Installs a unit for the app.
unit=app.service
cat > "$unit" <<'UNIT'
[Service]
ExecStart=/srv/app/bin/app
Restart=always
UNIT
cp "$unit" /etc/systemd/system/
systemctl enable --now app.service
