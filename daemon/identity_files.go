package daemon

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"

	"github.com/agentd/agentd/auditchain"
	"github.com/agentd/agentd/daemon/health"
)

// keyFiles are the files that keys were read from, as they were then. They change without
// the fleet's files: a key is imported or rotated, or a mounted secret is replaced.
type keyFiles []keyFile

type keyFile struct {
	path string
	info os.FileInfo // of what the path leads to, through links; nil if there was no file
}

// add notes the file of a reference to a secret. It must come before the file is read.
func (k *keyFiles) add(ref string) {
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		info, _ := os.Stat(path)
		*k = append(*k, keyFile{path, info})
	}
}

// changed returns what a file is now that has not been read so, or nil. A file that has
// gone is no reason to read: its keys stay in force until the next start.
func (k keyFiles) changed() os.FileInfo {
	for _, f := range k {
		now, err := os.Stat(f.path)
		if err != nil {
			continue
		}
		if f.info == nil || !os.SameFile(f.info, now) || !f.info.ModTime().Equal(now.ModTime()) ||
			f.info.Size() != now.Size() || f.info.Mode() != now.Mode() {
			return now
		}
	}
	return nil
}

// ownerOf returns the user whose file it is. A file is replaced and not written over, so
// that its owner is who has changed it.
func ownerOf(file os.FileInfo) *auditchain.Actor {
	stat, ok := file.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	a := auditchain.Actor{UID: &stat.Uid}
	// A user that the system does not know, as in a container, has a number only.
	if u, err := user.LookupId(strconv.FormatUint(uint64(stat.Uid), 10)); err == nil {
		a.User = u.Username
	}
	return &a
}

// keyFilesSubject names the condition of key files that cannot be read.
const keyFilesSubject = "key-files"

// followKeys puts changed key files in force, and judges the keys. It is called every
// [identityInterval].
func (d *Daemon) followKeys() {
	if !d.reloading.TryLock() {
		// A reload reads the keys itself. One that waits for a worker ends with the agent's stop,
		// which waits for this.
		return
	}
	defer d.reloading.Unlock()
	d.unread = nil
	if changed := d.keyring.current.Load().files.changed(); changed != nil {
		d.readKeysAgain(changed)
	}
	d.judgeIdentity()
}

// readKeysAgain reads the keys of the files in force once more, since one of them has
// changed. After an error those from before stay, and the next round tries again.
func (d *Daemon) readKeysAgain(changed os.FileInfo) {
	keys, err := d.readKeys(d.loaded.Load(), d.Member())
	if err != nil {
		d.unread = &health.Condition{
			Kind: health.Identity, Subject: keyFilesSubject, Code: "unreadable", Advisory: true, Cause: err.Error(),
			Effect: "the agent goes on with the keys from before a key file changed", Remedy: "mend the file: the agent reads it by itself",
		}
		return
	}
	d.useKeys(keys)
	d.recordKeys(keys, ownerOf(changed))
	d.log.Info("keys read again: a key file has changed")
}

// recordKeys records with which keys the agent goes on, and who has changed them.
func (d *Daemon) recordKeys(keys *memberKeys, by *auditchain.Actor) {
	body := struct {
		Event   string            `json:"event"`
		Version string            `json:"version"`
		Keys    []string          `json:"publicKeys"`
		Actor   *auditchain.Actor `json:"actor,omitempty"`
	}{"keys-changed", d.cfg.Version, make([]string, len(keys.own)), by}
	for i, k := range keys.own {
		body.Keys[i] = k.Public
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadRecordTimeout)
	defer cancel()
	if err := d.audit.append(ctx, auditchain.KindLifecycle, "", body); err != nil {
		d.log.Error("change of keys not recorded", "error", err) // as for a reload
	}
}

// useKeys puts keys in force. Where they make this replica step back, it does so before:
// what has arrived is served under the keys that it was signed for.
func (d *Daemon) useKeys(keys *memberKeys) {
	if _, _, others := d.judgeOwnKeys(keys); others {
		d.takeRequests(false)
	}
	d.keyring.current.Store(keys)
}
