#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs that ask much of a file system, each with its right result: version control, data bases, editors, archives,
# copies, package managers, watchers.
. "$(dirname "$0")/lib.sh"
require git sqlite3 rsync tar python3 vim.tiny nano tmux inotifywait less setfattr
export TERM=screen
SOCK=$WORK/tmux.0
start_cubefs
sandbox dev
W=$MNT/dev/files/workspace
L=$WORK/local # on the disk of this machine, for copies both ways
mkdir "$L"

end_terminal() {
	tmux -S "$SOCK" kill-server 2>/dev/null || true
}
on_exit end_terminal
terminal() { # COMMAND: on a terminal of its own, of a server that has not just been told to go
	end_terminal
	SOCK=$WORK/tmux.$((${SOCK##*.} + 1))
	tmux -S "$SOCK" -f /dev/null new-session -d -x 80 -y 24 "$1"
}
on_screen() { # REGEX
	tmux -S "$SOCK" capture-pane -p | grep -q -- "$1"
}
keys() {
	tmux -S "$SOCK" send-keys "$@"
}

# A tree with all that a copy may lose.
hard_tree() { # DIRECTORY
	mkdir -p "$1/sub/empty"
	echo text >"$1/file"
	ln "$1/file" "$1/sub/hard"
	ln -s ../file "$1/sub/soft"
	ln -s nowhere "$1/dangling"
	truncate -s 8M "$1/sparse"
	echo end >>"$1/sparse"
	mkfifo "$1/fifo"
	setfattr -n user.colour -v green "$1/file"
	setfattr -n user.kind -v tree "$1/sub"
	echo odd >"$1/"$'new\nline \377'
	chmod 640 "$1/file"
	chmod 2751 "$1/sub"
	find "$1" -depth -exec touch -h -d '2001-02-03 04:05:06.789012345 UTC' {} +
}
# Everything that can be seen of it, a line for each name.
shape() { # DIRECTORY
	python3 - "$1" <<'E2'
import hashlib, os, stat, sys
os.chdir(os.fsencode(sys.argv[1]))
paths = [b'.'] + [os.path.join(d, n) for d, dirs, files in os.walk(b'.') for n in dirs + files]
for path in sorted(paths):
    st = os.lstat(path)
    told = [path, oct(st.st_mode), st.st_mtime_ns]
    if stat.S_ISLNK(st.st_mode):
        told.append(os.readlink(path))
    else:
        told += [(x, os.getxattr(path, x)) for x in sorted(os.listxattr(path)) if x.startswith('user.')]
    if stat.S_ISREG(st.st_mode):
        told += [st.st_size, st.st_nlink, hashlib.sha256(open(path, 'rb').read()).hexdigest()]
    print(*told)
E2
}
same_tree() { # DIRECTORY DIRECTORY
	check_eq "$(shape "$2")" "$(shape "$1")" "$2"
	check_eq "$(stat -c %i "$2/file")" "$(stat -c %i "$2/sub/hard")" "a hard link in $2"
	[ "$(du -k "$2/sparse" | cut -f 1)" -le 1024 ] || fail "$2/sparse is not sparse"
}

# ---- copies both ways ----
hard_tree "$L/from"
check rsync -aHAXS "$L/from/" "$W/rsync/"
same_tree "$L/from" "$W/rsync"
check rsync -aHAXS "$W/rsync/" "$L/rsync/"
same_tree "$L/from" "$L/rsync"
check_eq "$(rsync -aHAXSni "$L/from/" "$W/rsync/")" '' 'a second rsync'
check tar -C "$L/from" --sparse --xattrs -cf "$L/t.tar" .
mkdir "$W/tar"
check tar -C "$W/tar" --sparse --xattrs --xattrs-include='user.*' -xpf "$L/t.tar"
same_tree "$L/from" "$W/tar"
check tar -C "$W/tar" --sparse --xattrs -cf "$W/t.tar" .
mkdir "$L/tar"
check tar -C "$L/tar" --sparse --xattrs --xattrs-include='user.*' -xpf "$W/t.tar"
same_tree "$L/from" "$L/tar"
check cp -a --reflink=auto --sparse=always "$W/rsync" "$W/copy"
same_tree "$L/from" "$W/copy"
check mv "$W/copy" "$L/moved"
same_tree "$L/from" "$L/moved"
check mv "$L/moved" "$W/moved"
same_tree "$L/from" "$W/moved"
check_not test -e "$L/moved"

# ---- dd with odd sizes ----
head -c 1000003 /dev/urandom >"$L/random"
for bs in 1 7 513 4097 65537; do
	count=1000003
	[ "$bs" -gt 1 ] || count=5000
	dd if="$L/random" of="$W/dd" bs="$bs" count="$count" status=none
	check cmp -n "$((bs > 1 ? 1000003 : 5000))" "$L/random" "$W/dd"
	rm "$W/dd"
done
cp "$L/random" "$W/dd"
dd if="$W/dd" of="$W/dd2" bs=4099 skip=3 seek=5 conv=notrunc status=none
check cmp <(tail -c +12298 "$L/random") <(tail -c +20496 "$W/dd2")

# ---- git ----
cd "$W"
git init -q repo
cd repo
git config user.email t@example.org
git config user.name t
for i in $(seq 30); do
	echo "$i" >"f$((i % 7))"
	git add . && git commit -qm "$i"
done
git branch side HEAD~10
check git worktree add -q ../side side
check_eq "$(git -C ../side rev-parse HEAD)" "$(git rev-parse HEAD~10)"
echo side >../side/new
git -C ../side add new
git -C ../side commit -qm new
check git merge -q side -m merged
check_eq "$(cat new)" side
check git gc -q --prune=now
check_eq "$(find .git/objects -name '*.pack' | wc -l)" 1
check git fsck --no-progress --strict
check git worktree remove ../side
check git clone -q . ../clone
check_eq "$(git -C ../clone rev-parse HEAD)" "$(git rev-parse HEAD)"
check_eq "$(git status --porcelain)" ''
cd /

# ---- sqlite with a write-ahead log ----
db=$W/wal.db
check_eq "$(sqlite3 "$db" 'pragma journal_mode=wal; create table t(x integer);')" wal
for i in $(seq 4); do
	(for k in $(seq 15); do sqlite3 -cmd '.timeout 20000' "$db" "insert into t values ($i * 100 + $k)" || exit 1; done) &
	writers[i]=$!
done
# from inside too, where shared mappings are one
if [ "$TEST_UID" -eq 0 ]; then
	check run dev "for k in \$(seq 15); do sqlite3 -cmd '.timeout 20000' wal.db \"insert into t values (500 + \$k)\" || exit 1; done"
fi
for i in $(seq 4); do wait "${writers[i]}"; done
check_eq "$(sqlite3 "$db" 'select count(*), count(distinct x) from t; pragma integrity_check')" \
	"$([ "$TEST_UID" -eq 0 ] && echo '75|75' || echo '60|60')"$'\nok'
check_eq "$(run dev 'sqlite3 wal.db "pragma integrity_check"')" ok

# ---- editors and pagers ----
printf 'one\ntwo\n' >"$W/text"
vim.tiny -es -u NONE -c '%s/two/three/' -c 'set backup' -c wq "$W/text"
check_eq "$(cat "$W/text")" $'one\nthree'
terminal "nano --ignorercfiles '$W/text'"
wait_for 20 on_screen 'three'
keys zero Enter C-o Enter
wait_for 20 grep -q '^zero$' "$W/text"
keys C-x
check_eq "$(cat "$W/text")" $'zero\none\nthree'
check_eq "$(find "$W" -name '*.sw?' -o -name '.text*' -o -name '*.save' | wc -l)" 0 'left by editors'
seq 5 >"$W/growing"
terminal "less +F '$W/growing'"
wait_for 20 on_screen '^5'
echo outside >>"$W/growing"
wait_for 20 on_screen '^outside'
run dev 'echo inside >>growing'
wait_for 20 on_screen '^inside'
keys C-c q

# ---- find -newer, inotifywait ----
touch -d '1 hour ago' "$W/mark"
mkdir "$W/times"
touch -d '2 hours ago' "$W/times/old"
: >"$W/times/new"
run dev ': >times/inside'
check_eq "$(find "$W/times" -type f -newer "$W/mark" -printf '%f\n' | sort)" $'inside\nnew'
inotifywait -m -r --format '%e %f' "$W/times" >"$WORK/watched" 2>"$WORK/watching" &
watcher=$!
on_exit kill "$watcher"
watched() { grep -q -- "$1" "$WORK/watched"; }
wait_for 20 grep -q established "$WORK/watching"
: >"$W/times/first"
wait_for 20 watched '^CREATE first'
mv "$W/times/first" "$W/times/second"
wait_for 20 watched '^MOVED_TO second'
echo more >>"$W/times/second"
wait_for 20 watched '^CLOSE_WRITE,CLOSE second'
rm "$W/times/second"
wait_for 20 watched '^DELETE second'

# ---- python, npm ----
check python3 -m venv --without-pip "$W/venv"
check_eq "$("$W/venv/bin/python" -c 'import sys; print(sys.prefix != sys.base_prefix)')" True
check_eq "$(run dev 'venv/bin/python -c "import sys; print(sys.prefix)"')" /workspace/venv
python3 - "$W" <<'E2'
import os, shelve, sys, tempfile, zipfile
os.chdir(sys.argv[1])
with shelve.open('shelf') as s:
    s['key'] = list(range(1000))
with shelve.open('shelf') as s:
    assert s['key'][999] == 999
with zipfile.ZipFile('z.zip', 'w') as z:
    z.writestr('a/b', 'c')
assert zipfile.ZipFile('z.zip').read('a/b') == b'c'
with tempfile.TemporaryFile(dir='.') as t:
    t.write(b'x')
    t.seek(0)
    assert t.read() == b'x'
E2
if command -v npm >/dev/null; then
	mkdir -p "$L/package" "$W/app"
	echo '{"name":"left","version":"1.0.0","main":"index.js","bin":{"left":"cli.js"}}' >"$L/package/package.json"
	echo 'module.exports = (s, n) => String(s).padStart(n);' >"$L/package/index.js"
	printf '#!/usr/bin/env node\nconsole.log(require("./index.js")("x", 3));\n' >"$L/package/cli.js"
	(cd "$L" && npm pack --silent ./package >/dev/null)
	cd "$W/app"
	echo '{"name":"app","version":"1.0.0"}' >package.json
	check npm install --silent --offline --no-audit --no-fund --cache "$WORK/npm" "$L/left-1.0.0.tgz"
	check_eq "$(node -e 'console.log(require("left")(7, 4))')" '   7'
	check_eq "$(./node_modules/.bin/left)" '  x'
	check_eq "$(readlink node_modules/.bin/left)" ../left/cli.js
	cd /
fi
