package natsauth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// An Account is one account of a NATS system in operator mode.
type Account struct {
	// Name is the account's, and Key its public nkey.
	Name string `json:"name"`
	Key  string `json:"key"`
	// JWT is signed by the operator; servers get it.
	JWT string `json:"-"`
}

// CredsFile is the path of a user's credentials in a folder of keys.
func CredsFile(dir, name string) string { return filepath.Join(dir, name+".creds") }

// ClaimsSubject is where the servers of an operator take new accounts, from users of
// the system account. They are in force at once: no server is restarted.
const ClaimsSubject = "$SYS.REQ.CLAIMS.UPDATE"

// safeName is the grammar of names that go into JWTs. A name such as * would be a
// wildcard in the subjects that others derive from it.
var safeName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Accounts makes what [Rules.WriteConfig] writes for operator mode: it returns the
// accounts, signed by the operator's key or by one of its signing keys, and writes the
// users' credentials beside their seeds in dir. It generates keys that are missing.
//
// Credentials that say what they should are kept. Older ones of a user whose rights have
// changed, and those of users that are no longer there, are revoked in the accounts.
func (r *Rules) Accounts(dir string, operator nkeys.KeyPair) ([]Account, error) {
	if err := r.checkNames(); err != nil {
		return nil, err
	}
	if _, err := r.EnsureKeys(dir); err != nil {
		return nil, err
	}
	i := issuer{rules: r, dir: dir, operator: operator}
	calls, err := i.open(r.CallsAccount(), accountKey)
	if err != nil {
		return nil, err
	}
	for _, u := range append(slices.Clone(r.Users), r.observer()) {
		if err := calls.addUser(u.ID, u.permissions()); err != nil {
			return nil, err
		}
	}
	opened := []*openAccount{calls}
	if len(r.Queues) > 0 {
		more, err := i.openJetStream()
		if err != nil {
			return nil, err
		}
		opened = append(opened, more...)
	}
	closed, err := i.closeOthers(opened)
	if err != nil {
		return nil, err
	}
	var all []Account
	for _, a := range append(opened, closed...) {
		account, err := a.sign()
		if err != nil {
			return nil, err
		}
		all = append(all, account)
	}
	return all, nil
}

func (r *Rules) checkNames() error {
	var errs []error
	names := []string{r.Fleet}
	for _, u := range r.Users {
		names = append(names, ServiceName(u.ID))
	}
	for _, name := range names {
		if !safeName.MatchString(name) {
			errs = append(errs, fmt.Errorf("natsauth: %q cannot name an account: use letters, digits, - and _", name))
		}
	}
	return errors.Join(errs...)
}

// permissions are the user's in the form of JWTs.
func (u *User) permissions() jwt.Permissions {
	p := jwt.Permissions{Sub: jwt.Permission{Allow: u.Subscribe}, Pub: jwt.Permission{Allow: u.Publish}}
	if len(u.Publish) == 0 {
		p.Pub = jwt.Permission{Deny: []string{">"}}
	}
	return p
}

// accountKey begins the names of the accounts' seeds.
const accountKey = "ACCOUNT"

// An issuer makes accounts and credentials.
type issuer struct {
	rules    *Rules
	dir      string
	operator nkeys.KeyPair
}

// An openAccount is an account that is being made.
type openAccount struct {
	issuer *issuer
	key    nkeys.KeyPair
	public string
	claims *jwt.AccountClaims
}

// open begins an account, whose seed has a name of its own.
func (i *issuer) open(name, keyName string) (*openAccount, error) {
	path := KeyFile(i.dir, keyName)
	if err := ensureSeed(path, nkeys.CreateAccount); err != nil {
		return nil, fmt.Errorf("natsauth: key of the account %s: %w", name, err)
	}
	key, err := readSeed(path)
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("natsauth: %s: %w", path, err)
	}
	a := &openAccount{issuer: i, key: key, public: public, claims: jwt.NewAccountClaims(public)}
	a.claims.Name = name
	return a, nil
}

// openJetStream makes the account that has JetStream and those that import from it.
func (i *issuer) openJetStream() ([]*openAccount, error) {
	r := i.rules
	js, err := i.open(r.JetStreamAccount(), accountKey+queueSuffix)
	if err != nil {
		return nil, err
	}
	js.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{
		MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit,
	}
	if err := js.addUser(OperatorKey, jwt.Permissions{}); err != nil {
		return nil, err
	}
	for _, e := range outermost(r.exports()) {
		x := &jwt.Export{Name: e.subject, Subject: jwt.Subject(e.subject), Type: exportType(e.stream), TokenReq: true}
		if e.many {
			x.ResponseType, x.ResponseThreshold = jwt.ResponseTypeStream, answerTime
		}
		js.claims.Exports.Add(x)
	}
	all := []*openAccount{js}
	for _, q := range r.Queues {
		a, err := i.open(r.QueueAccount(q.ID), accountKey+queueSuffix+"+"+q.ID)
		if err != nil {
			return nil, err
		}
		if err := a.addUser(QueueKey(q.ID), jwt.Permissions{}); err != nil {
			return nil, err
		}
		for _, s := range q.Services {
			if err := a.addImport(js, s, false); err != nil {
				return nil, err
			}
		}
		for _, s := range q.Streams {
			if err := a.addImport(js, s, true); err != nil {
				return nil, err
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// closeOthers makes the accounts whose seeds are left over from members that are gone, or
// that no longer use JetStream: they may do nothing.
func (i *issuer) closeOthers(opened []*openAccount) (closed []*openAccount, err error) {
	files, err := filepath.Glob(filepath.Join(i.dir, accountKey+"*.nk"))
	if err != nil {
		return nil, fmt.Errorf("natsauth: %w", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".nk")
		a, err := i.open("closed"+strings.TrimPrefix(name, accountKey), name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(opened, func(o *openAccount) bool { return o.public == a.public }) {
			continue
		}
		a.claims.Limits.Conn = 0
		a.claims.Revocations = jwt.RevocationList{jwt.All: allTime}
		closed = append(closed, a)
	}
	return closed, nil
}

// outermost leaves out exports that are part of another one: in a JWT they must not
// overlap. What an account may import of one is what its token says. Wide exports that end
// in > are looked up by their beginning, as a fleet has several for each agent.
func outermost(all []export) []export {
	tails, others := map[bool]map[string]bool{false: {}, true: {}}, []export{}
	for _, e := range all {
		beginning, tail := strings.CutSuffix(e.subject, ".>")
		switch {
		case strings.Contains(e.subject, "*"), e.subject == ">":
			others = append(others, e)
		case tail:
			tails[e.stream][beginning] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(e export) bool {
		for above := parent(strings.TrimSuffix(e.subject, ".>")); above != ""; above = parent(above) {
			if tails[e.stream][above] {
				return true
			}
		}
		return slices.ContainsFunc(others, func(other export) bool {
			return other.stream == e.stream && other.subject != e.subject && jwt.Subject(e.subject).IsContainedIn(jwt.Subject(other.subject))
		})
	})
}

func exportType(stream bool) jwt.ExportType {
	if stream {
		return jwt.Stream
	}
	return jwt.Service
}

// addImport imports a subject. The exporter's token is for this account alone: without
// it any account of the operator could import the same.
func (a *openAccount) addImport(from *openAccount, i Import, stream bool) error {
	token := jwt.NewActivationClaims(a.public)
	token.Name, token.ImportSubject, token.ImportType = i.Subject, jwt.Subject(i.Subject), exportType(stream)
	signed, err := token.Encode(from.key)
	if err != nil {
		return fmt.Errorf("natsauth: import of %s: %w", i.Subject, err)
	}
	added := &jwt.Import{Name: i.Subject, Subject: jwt.Subject(i.Subject), Account: from.public, Token: signed, Type: exportType(stream)}
	if i.To != i.Subject {
		added.LocalSubject = jwt.RenamingSubject(i.To)
	}
	a.claims.Imports.Add(added)
	return nil
}

// addUser writes the credentials of a user, unless there are some that say the same, and
// revokes all that were issued before.
func (a *openAccount) addUser(name string, permissions jwt.Permissions) error {
	key, err := readSeed(KeyFile(a.issuer.dir, name))
	if err != nil {
		return err
	}
	public, err := key.PublicKey()
	if err != nil {
		return fmt.Errorf("natsauth: key of %s: %w", name, err)
	}
	user := jwt.NewUserClaims(public)
	user.Name, user.Permissions = name, permissions
	path := CredsFile(a.issuer.dir, name)
	issued, kept := issuedAt(path, user, a.public)
	if !kept {
		if issued, err = writeCreds(path, user, key, a.key); err != nil {
			return fmt.Errorf("natsauth: credentials of %s: %w", name, err)
		}
	}
	if a.claims.Revocations == nil {
		a.claims.Revocations = jwt.RevocationList{}
	}
	a.claims.Revocations[public] = issued - 1
	return nil
}

// issuedAt returns when the credentials in a file were issued. kept is false if there are
// none, or if they say something else than want.
func issuedAt(path string, want *jwt.UserClaims, account string) (issued int64, kept bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	token, err := jwt.ParseDecoratedJWT(data)
	if err != nil {
		return 0, false
	}
	have, err := jwt.DecodeUserClaims(token)
	if err != nil || have.Subject != want.Subject || have.Issuer != account || have.Name != want.Name ||
		!slices.Equal(have.Pub.Allow, want.Pub.Allow) || !slices.Equal(have.Pub.Deny, want.Pub.Deny) ||
		!slices.Equal(have.Sub.Allow, want.Sub.Allow) || !slices.Equal(have.Sub.Deny, want.Sub.Deny) || have.Resp != nil {
		return 0, false
	}
	return have.IssuedAt, true
}

// writeCreds writes credentials such that a reader sees the old ones or the new ones.
func writeCreds(path string, user *jwt.UserClaims, key, account nkeys.KeyPair) (issued int64, err error) {
	token, err := user.Encode(account)
	if err != nil {
		return 0, err
	}
	seed, err := key.Seed()
	if err != nil {
		return 0, err
	}
	creds, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return 0, err
	}
	next := path + ".new"
	if err := os.WriteFile(next, creds, 0o600); err != nil {
		return 0, err
	}
	return user.IssuedAt, os.Rename(next, path)
}

// sign revokes the users whose seeds are left over, and signs the account.
func (a *openAccount) sign() (Account, error) {
	files, err := filepath.Glob(filepath.Join(a.issuer.dir, "*.nk"))
	if err != nil {
		return Account{}, fmt.Errorf("natsauth: %w", err)
	}
	names := a.issuer.rules.KeyNames()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".nk")
		key, err := readSeed(file)
		if err != nil || slices.Contains(names, name) {
			continue
		}
		if public, err := key.PublicKey(); err == nil && nkeys.IsValidPublicUserKey(public) {
			a.claims.Revocations[public] = allTime
		}
	}
	var faults jwt.ValidationResults
	a.claims.Validate(&faults)
	if errs := faults.Errors(); len(errs) > 0 {
		return Account{}, fmt.Errorf("natsauth: the account %s: %w", a.claims.Name, errors.Join(errs...))
	}
	token, err := a.claims.Encode(a.issuer.operator)
	if err != nil {
		return Account{}, fmt.Errorf("natsauth: the account %s: %w", a.claims.Name, err)
	}
	return Account{Name: a.claims.Name, Key: a.public, JWT: token}, nil
}

// allTime is a time after which this software is not used any more (the year 2100).
const allTime = 4102444800

// readSeed reads a seed of any kind.
func readSeed(path string) (nkeys.KeyPair, error) {
	seed, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("natsauth: %w", err)
	}
	key, err := nkeys.ParseDecoratedNKey(seed)
	if err != nil {
		return nil, fmt.Errorf("natsauth: %s is no seed of an nkey: %w", path, err)
	}
	return key, nil
}

// ReadOperatorKey reads the seed of an operator, or of one of its signing keys.
func ReadOperatorKey(path string) (nkeys.KeyPair, error) {
	key, err := readSeed(path)
	if err != nil {
		return nil, err
	}
	if public, err := key.PublicKey(); err != nil || !nkeys.IsValidPublicOperatorKey(public) {
		return nil, fmt.Errorf("natsauth: %s is not the seed of an operator (it begins with SO)", path)
	}
	return key, nil
}

// WriteAccounts writes each account to <public key>.jwt in a folder, which is how the
// resolvers of nats-server name them.
func WriteAccounts(dir string, all []Account) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("natsauth: %w", err)
	}
	for _, a := range all {
		if err := os.WriteFile(filepath.Join(dir, a.Key+".jwt"), []byte(a.JWT), 0o644); err != nil { //nolint:gosec // accounts are public
			return fmt.Errorf("natsauth: %w", err)
		}
	}
	return nil
}
