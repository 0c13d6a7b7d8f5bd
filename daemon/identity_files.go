package daemon

import (
	"context"
	"os"
	"strings"

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

// changed reports whether a file is there that has not been read. A file that has gone is
// no reason to read: its keys stay in force until the next start.
func (k keyFiles) changed() bool {
	for _, f := range k {
		now, err := os.Stat(f.path)
		if err != nil {
			continue
		}
		if f.info == nil || !os.SameFile(f.info, now) || !f.info.ModTime().Equal(now.ModTime()) ||
			f.info.Size() != now.Size() || f.info.Mode() != now.Mode() {
			return true
		}
	}
	return false
}

// keyFilesSubject names the condition of key files that cannot be read.
const keyFilesSubject = "key-files"

// followKeys puts changed key files in force, and judges the keys. It is called every
// [identityInterval].
func (d *Daemon) followKeys() {
	d.reloading.Lock() // a reload does the same
	defer d.reloading.Unlock()
	d.unread = nil
	if d.keyring.current.Load().files.changed() {
		d.readKeysAgain()
	}
	d.judgeIdentity()
}

// readKeysAgain reads the keys of the files in force once more. After an error those from
// before stay, and the next round tries again.
func (d *Daemon) readKeysAgain() {
	keys, err := d.readKeys(d.loaded.Load(), d.Member())
	if err != nil {
		d.unread = &health.Condition{
			Kind: health.Identity, Subject: keyFilesSubject, Code: "unreadable", Advisory: true, Cause: err.Error(),
			Effect: "the agent goes on with the keys from before a key file changed", Remedy: "mend the file: the agent reads it by itself",
		}
		return
	}
	d.useKeys(keys)
	d.recordKeys(keys)
	d.log.Info("keys read again: a key file has changed")
}

// recordKeys records with which keys the agent goes on.
func (d *Daemon) recordKeys(keys *memberKeys) {
	body := struct {
		Event   string   `json:"event"`
		Version string   `json:"version"`
		Keys    []string `json:"publicKeys"`
	}{"keys-changed", d.cfg.Version, make([]string, len(keys.own))}
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
