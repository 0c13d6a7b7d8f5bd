package main

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	_ "modernc.org/sqlite" // the command `sql` of the scripts

	"github.com/agentd/agentd/daemon"
	"github.com/agentd/agentd/daemon/control"
	"github.com/agentd/agentd/fleet"
	"github.com/agentd/agentd/internal/cli"
	"github.com/agentd/agentd/internal/eventually"
)

func TestMain(m *testing.M) {
	// Scripts spend most of their time waiting for processes: more of them than
	// there are processors make good use of it. -parallel overrides this.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"agentd": main, "goskill": goSkill, "goattack": goAttack, "gomcp": goMCP, "untraced": untraced, "mcpserver": mcpServer, "mcpclient": mcpClient, "mcphttpclient": mcpHTTPClient})
}

// TestScripts drives the binary as its users do.
func TestScripts(t *testing.T) { testscript.Run(t, scriptParams(t, "script")) }

// scriptParams are the parameters of the scripts in a folder of testdata.
func scriptParams(t *testing.T, folder string) testscript.Params {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	goEnv := goEnvironment(t)
	servers := newServices()
	signals := &collectors{}
	return testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			runtime, err := os.MkdirTemp("", "agentd") // sockets need short paths
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(runtime) })
			env.Setenv("REPO", repo)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("XDG_RUNTIME_DIR", runtime)
			env.Setenv("AGENTD_LOG_FORMAT", "text") // scripts read logs as people do
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv(nodeModulesEnv, os.Getenv(nodeModulesEnv))
			for name, value := range goEnv {
				env.Setenv(name, value)
			}
			return nil
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"knowscall":  knowsCall,
			"waitready":  waitReady,
			"bigfile":    bigFile,
			"sql":        sqlCommand,
			"auditlog":   auditLog,
			"witnessed":  witnessed,
			"cmpseqs":    compareSeqs,
			"exits":      exits,
			"waitfor":    waitFor,
			"eventually": eventuallyMatches,
			"post":       postRequest,
			"httpget":    httpGet,
			"sshkey":     sshKey,
			"mailserver": servers.mailServer,
			"mails":      servers.printMails,
			"webserver":  servers.webServer,
			"requests":   servers.printRequests,
			"expand":     expandFiles,
			"collector":  signals.start,
			"spantree":   signals.tree,
			"spanid":     signals.span,
			"unsaid":     signals.unsaid,
			"logged":     signals.logged,
			"auditseqs":  signals.auditSeqs,
			"refused":    refused,
		},
	}
}

// goEnvironment lets the sample's skills, which are started with `go run`,
// find the caches of this machine.
func goEnvironment(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	env := map[string]string{}
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		env[name] = values[i]
	}
	return env
}

// waitReady waits until the agents of the fleet in a folder take calls:
// waitready <folder> <agent>…
func waitReady(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitready <folder> <agent>…")
	}
	root, err := fleet.FindRoot(ts.MkAbs(args[0]))
	ts.Check(err)
	f, err := fleet.Load(root, cli.FleetOptions(fleet.LoadOptions{InspectOnly: true}))
	ts.Check(err)
	paths, err := daemon.DefaultPaths(f.Name, f.Root, ts.Getenv)
	ts.Check(err)
	for _, agent := range args[1:] {
		client := control.NewClient(paths.Socket(agent))
		eventually.Succeeds(ts, agent+" is ready", func() error { return client.Ready(context.Background()) })
		client.Close()
	}
}

// bigFile writes a JSON string of a size: bigfile <name> <bytes>
func bigFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bigfile <name> <bytes>")
	}
	size, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`"`+strings.Repeat("x", size-2)+`"`), 0o600))
}

// sqlCommand changes a database behind its owner's back: sql <file> <statement>
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql <file> <statement>")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.Exec(args[1])
	ts.Check(err)
	ts.Check(db.Close())
}
