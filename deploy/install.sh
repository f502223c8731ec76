#!/bin/sh
# Installs Warren from an archive that `cargo xtask dist` made: checks its SHA-256, then puts the binary in place.
# `--help` shows the options. Everything is in functions, so that half a script, from a broken download, does nothing.
set -eu

usage() {
  cat <<'END'
Installs the warren binary: checks the archive's SHA-256 first, and replaces an older version in one step.

Usage: install.sh [--from PLACE] [--to DIR]

  --from PLACE  where the archive and SHA256SUMS are: a directory, or an address that begins with https://
                (WARREN_INSTALL_FROM) [default: the directory of this script]
  --to DIR      where the binary goes (WARREN_INSTALL_TO) [default: /usr/local/bin for root, else ~/.local/bin]
END
}

fail() {
  printf 'install.sh: %s\n' "$*" >&2
  exit 1
}

main() {
  from="${WARREN_INSTALL_FROM:-}"
  to="${WARREN_INSTALL_TO:-}"
  while [ $# -gt 0 ]; do
    case "$1" in
      --from | --to)
        [ $# -ge 2 ] || fail "$1 needs a value; --help shows the options"
        if [ "$1" = --from ]; then from="$2"; else to="$2"; fi
        shift
        ;;
      --from=*) from="${1#*=}" ;;
      --to=*) to="${1#*=}" ;;
      -h | --help) usage && exit 0 ;;
      *) fail "there is no option $1; --help shows the options" ;;
    esac
    shift
  done
  [ -n "$from" ] || from="$(directory_of_script)"
  [ -n "$to" ] || to="$(usual_place)"
  machine="$(machine)"

  work="$(mktemp -d "${TMPDIR:-/tmp}/warren-install.XXXXXX")"
  new=''
  trap 'rm -rf "$work"; [ -z "$new" ] || rm -f "$new"' EXIT
  trap 'exit 130' HUP INT TERM

  get SHA256SUMS
  archive="$(archive_for "$machine")"
  get "$archive"
  check "$archive"
  unpack "$archive"
  install_binary "$work/${archive%.tar.gz}/warren"
}

# A script that comes through a pipe lies nowhere.
directory_of_script() {
  case "$0" in
    *install.sh) dirname -- "$0" ;;
    *) fail 'say where the archive is: --from DIR, or --from https://…' ;;
  esac
}

usual_place() {
  if [ "$(id -u)" -eq 0 ]; then
    echo /usr/local/bin
  else
    [ -n "${HOME:-}" ] || fail 'there is no home directory: name a directory with --to DIR'
    echo "$HOME/.local/bin"
  fi
}

machine() {
  [ "$(uname -s)" = Linux ] || fail "the archives are for Linux, and this is $(uname -s): build Warren with cargo"
  case "$(uname -m)" in
    x86_64 | amd64) echo x86_64-linux ;;
    aarch64 | arm64) echo aarch64-linux ;;
    *) echo "$(uname -m)-linux" ;;
  esac
}

# get NAME: from the place that was named into the working directory.
get() {
  case "$from" in
    https://* | http://localhost[:/]* | http://127.0.0.1[:/]*) download "${from%/}/$1" "$work/$1" ;;
    http://*) fail "$from is not protected on its way: use https://, or bring the files here and use --from DIR" ;;
    *) cp -- "$from/$1" "$work/$1" 2>/dev/null || fail "there is no $1 in $from" ;;
  esac
}

download() {
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --output "$2" -- "$1" || fail "$1 could not be downloaded"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" -- "$1" || fail "$1 could not be downloaded"
  else
    fail 'curl or wget is needed to download'
  fi
}

# archive_for MACHINE: its name, as SHA256SUMS has it.
archive_for() {
  name="$(awk -v end="-$1.tar.gz" '
    { sub(/^\*/, "", $2) }
    $2 ~ /^warren-[0-9A-Za-z._+-]+$/ && substr($2, length($2) - length(end) + 1) == end { print $2 }
  ' "$work/SHA256SUMS" | tail -n 1)"
  [ -n "$name" ] || fail "there is no archive for $1 in the SHA256SUMS of $from"
  echo "$name"
}

check() {
  wanted="$(awk -v name="$1" '{ sub(/^\*/, "", $2) } $2 == name { print $1 }' "$work/SHA256SUMS" | tail -n 1)"
  found="$(sum_of "$work/$1")"
  [ "$wanted" = "$found" ] || fail "the SHA-256 of $1 is wrong, so nothing was installed
  expected $wanted
  found    $found
Download it again. If that does not help, somebody has changed it."
}

sum_of() {
  if command -v sha256sum >/dev/null; then
    sha256sum <"$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null; then
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null; then
    openssl dgst -sha256 -r <"$1" | cut -d ' ' -f 1
  else
    fail 'sha256sum, shasum or openssl is needed to check the archive'
  fi
}

unpack() {
  tar -xzf "$work/$1" -C "$work" || fail "$1 cannot be unpacked"
  [ -f "$work/${1%.tar.gz}/warren" ] || fail "there is no warren in $1"
}

# The new binary is written beside the old one and takes its name in one step, after it has shown that it runs here.
install_binary() {
  mkdir -p -- "$to" 2>/dev/null || fail "$to cannot be made: name another directory with --to DIR, or do this as root"
  to="$(cd -- "$to" && pwd)"
  [ ! -d "$to/warren" ] || fail "$to/warren is a directory: name another one with --to DIR"
  new="$(mktemp "$to/.warren.XXXXXX" 2>/dev/null)" ||
    fail "$to cannot be written: name another directory with --to DIR, or do this as root"
  cp -- "$1" "$new"
  chmod 755 "$new"
  version="$("$new" --version 2>/dev/null)" ||
    fail "the binary of this archive does not run on this machine; is its C library older than glibc 2.17, or not glibc?"
  old=''
  if [ -f "$to/warren" ]; then
    old="$("$to/warren" --version 2>/dev/null)" || old='a version that does not run'
  fi
  mv -f -- "$new" "$to/warren"
  new=''
  report
}

report() {
  case "$old" in
    '') printf 'installed %s as %s/warren\n' "$version" "$to" ;;
    "$version") printf 'installed %s again as %s/warren\n' "$version" "$to" ;;
    *) printf 'replaced %s by %s in %s/warren\n' "$old" "$version" "$to" ;;
  esac
  [ -z "$old" ] || echo 'A server that runs goes on with the old one until it is restarted.'
  case ":$PATH:" in
    *":$to:"*) found="$(command -v warren || true)" ;;
    *)
      # shellcheck disable=SC2016 # the shell of the person who reads it puts the value in
      printf '%s is not on your PATH. For this shell: export PATH="%s:$PATH"\n' "$to" "$to"
      return
      ;;
  esac
  [ "$found" = "$to/warren" ] || printf 'Another one comes first on your PATH: %s\n' "$found"
  echo 'Start with: warren up'
}

main "$@"
