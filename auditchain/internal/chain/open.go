package chain

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/agentd/agentd/auditchain/checkpoint"
	"github.com/agentd/agentd/auditchain/internal/auditerr"
	"github.com/agentd/agentd/auditchain/internal/sidecar"
	"github.com/agentd/agentd/auditchain/internal/store"
)

// originPrefix begins the origin of every log.
const originPrefix = "agentd.audit/"

// Found is what Open found.
type Found struct {
	// Created is true for a log that did not exist before.
	Created bool
	// Records is the number of the newest record, 0 in an empty log.
	Records int64
	// Unsigned counts the records after the newest checkpoint. They were checked
	// and are now signed.
	Unsigned int64
	// KeysMissing is true if the file of public keys was not there; Open has written it
	// again. CheckpointMissing is true if the checkpoint file of a log that has been
	// signed was not there: nothing would have shown that the database was cut.
	KeysMissing, CheckpointMissing bool
	// KeyChanged is true if an interrupted change of the signing key was
	// completed, or a lost key replaced.
	KeyChanged bool
}

// Open opens the log at path for writing, and creates it if there is none. It
// fails if another writer has the log open, or if the log does not pass the
// checks of [Writer.recover].
func Open(ctx context.Context, path string, options Options, connect store.Connect) (*Writer, Found, error) {
	path, err := store.Resolve(path)
	if err != nil {
		return nil, Found{}, err
	}
	lock, err := sidecar.Lock(path)
	if err != nil {
		return nil, Found{}, err
	}
	sidecar.RemoveLeftovers(path)
	db, err := store.OpenWriter(ctx, path, connect)
	if err != nil {
		lock.Release()
		return nil, Found{}, err
	}
	w := &Writer{db: db, lock: lock, options: options, connect: connect}
	created, err := w.load(ctx)
	if err != nil {
		_ = w.Close() // err is what matters
		return nil, Found{}, err
	}
	found, err := w.recover(ctx)
	if err != nil {
		_ = w.Close()
		return nil, Found{}, err
	}
	found.Created = created
	return w, found, nil
}

// load creates the log if the database is empty, and otherwise brings its schema
// up to date.
func (w *Writer) load(ctx context.Context) (created bool, err error) {
	version, err := w.db.Version(ctx)
	if err != nil {
		return false, err
	}
	if version == 0 {
		if err := w.create(ctx); err != nil {
			return false, err
		}
		created, version = true, store.SchemaVersion
	}
	return created, w.db.Load(ctx, version)
}

// create makes the key and the tables of a new log. The key comes first: a crash
// in between leaves a key without a log, which the next start uses.
func (w *Writer) create(ctx context.Context) error {
	path := w.db.Path
	note, err := sidecar.ReadCheckpoint(path)
	if err != nil {
		return err
	}
	if note != nil {
		return &auditerr.Error{Code: auditerr.CodeRollback, Path: path, Msg: "the database is empty, but a signed checkpoint of it exists",
			Hint: "restore the database from a backup; to start a new log, use another path"}
	}
	key, err := sidecar.ReadKey(path, sidecar.KeySuffix)
	if auditerr.CodeOf(err) == auditerr.CodeKeyMissing {
		key, err = newLogKey(w.options.Name)
		if err == nil {
			err = sidecar.WriteKey(path, sidecar.KeySuffix, key)
		}
	}
	if err != nil {
		return w.db.Wrap("creating the signing key", err)
	}
	if err := sidecar.AddPublicKey(path, key.Verifier()); err != nil {
		return err
	}
	if err := w.db.Create(ctx, store.Identity{Origin: key.Name(), FirstKey: key.Verifier()}); err != nil {
		return err
	}
	return sidecar.Sync(path)
}

// newLogKey generates the key of a new log. Its name becomes the log's origin,
// and has a random part, so that no two logs share an origin.
func newLogKey(name string) (*checkpoint.Key, error) {
	var id [8]byte
	rand.Read(id[:]) // never fails (crypto/rand)
	return checkpoint.GenerateKey(originPrefix + name + "/" + hex.EncodeToString(id[:]))
}
