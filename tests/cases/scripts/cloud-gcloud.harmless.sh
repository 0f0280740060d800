#!/usr/bin/env bash
# expect: allow
# Checks a project before the hand-over.
set -u
project=acme-old
gcloud config set project "$project"
gcloud compute instances list
gcloud projects describe "$project"
gcloud auth list
