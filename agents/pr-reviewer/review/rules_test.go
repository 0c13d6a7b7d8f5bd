package review

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// diffOf makes the diff of one file from lines that begin with '+', '-' or ' '.
func diffOf(path string, lines ...string) string {
	oldLines, newLines, newStart := 0, 0, 10
	for _, line := range lines {
		if line[0] != '+' {
			oldLines++
		}
		if line[0] != '-' {
			newLines++
		}
	}
	if newLines == 0 {
		newStart-- // an empty side is given as the line before it
	}
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -10,%d +%d,%d @@\n%s\n",
		path, oldLines, newStart, newLines, strings.Join(lines, "\n"))
}

// hits returns "line" for every finding of the rule in the diff.
func hits(t *testing.T, rule, diff string) []int {
	t.Helper()
	files, err := ParseDiff([]byte(diff))
	if err != nil {
		t.Fatalf("%v in\n%s", err, diff)
	}
	var lines []int
	for _, f := range Review(files, Low).Findings {
		if f.Rule == rule {
			lines = append(lines, f.Line)
		}
	}
	return lines
}

// A sample is code that a rule must or must not find; added lines only.
type sample struct {
	path string
	text string
}

// Keys are put together here so that this file holds none.
var (
	awsKey    = "AKIA" + "FAKEFAKEFAKE2345"
	ghToken   = "ghp_" + strings.Repeat("aB3x", 9)
	ghPat     = "github" + "_pat_" + strings.Repeat("aB", 11) + "_" + strings.Repeat("c", 59)
	gitlab    = "glpat-" + strings.Repeat("Fk3_", 6)
	npm       = "npm_" + strings.Repeat("fAk3", 9)
	sendgrid  = "SG." + strings.Repeat("fA", 11) + "." + strings.Repeat("k3_", 14) + "x"
	hook      = "hooks.slack.com" + "/services/T00FAKE00/B00FAKE00/" + strings.Repeat("fAk3", 6)
	slack     = "xox" + "b-123456789012-abcdefABCDEF1234"
	google    = "AIza" + strings.Repeat("fAk3_", 7)
	stripe    = "sk_" + "live_" + strings.Repeat("4eC3", 6)
	pem       = "-----BEGIN " + "RSA PRIVATE KEY-----"
	pemBody   = "MIIEpAIBAAKCAQEAfakefakefakefakefakefakefakefakefakefakefakefake"
	dbURL     = "postgres://billing:" + "s3rv1ceP4ss@db.internal.corp:5432/x"
	randomHex = "9f86d081884c7d65" + "9a2feaa0c55ad015"
	random62  = "hX3kQ9vT7mL2pR8w" + "Zb4"
)

var ruleSamples = map[string]struct{ bad, good []sample }{
	"leaked-key": {
		bad: []sample{
			{"a.ts", `const id = "` + awsKey + `";`},
			{"README.md", "export AWS_ACCESS_KEY_ID=" + awsKey},
			{"a_test.go", `	token := "` + ghToken + `"`},
			{"ci.yaml", "  token: " + ghPat},
			{"ci.yaml", "  token: " + gitlab},
			{".npmrc", "//registry.npmjs.org/:_authToken=" + npm},
			{"a.py", "mail = \"" + sendgrid + "\""},
			{"a.sh", "curl -d @msg https://" + hook},
			{"a.py", `slack = '` + slack + `'`},
			{"a.html", `<script src="https://maps.example/js?key=` + google + `">`},
			{"a.rb", `Stripe.api_key = "` + stripe + `"`},
			{"conf.yaml", "url: " + dbURL},
			{"key.pem", pem + "\n+" + pemBody},
			{"a.go", "const key = \"" + pem + `\n` + pemBody + `\n"`},
			{"a.go", "// old key: " + awsKey},
		},
		good: []sample{
			{"a.ts", `const id = "AKIAIOSFODNN7EXAMPLE";`},
			{"a.ts", `const id = "AKIAXXXXXXXXXXXXXXXX";`},
			{"a.ts", `const prefix = "AKIA";`},
			{"a.py", `token = "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`},
			{"a.go", `	if strings.Contains(s, "` + pem + `") {`},
			{"conf.yaml", "url: postgres://billing:${DB_PASSWORD}@db.internal.corp/x"},
			{"conf.yaml", "url: postgres://user:password@db.internal.corp/x"},
			{"a.go", `	base := "https://api.corp.com:8443/v1/users@2024"`},
			{"conf_test.go", `	url := "` + dbURL + `"`},
			{"pub.pem", "-----BEGIN PUBLIC KEY-----\n+" + pemBody},
		},
	},
	"hardcoded-secret": {
		bad: []sample{
			{"a.ts", `const apiKey = "` + random62 + `";`},
			{"a.go", `	dbPassword := "` + random62 + `"`},
			{"a.py", `SECRET_KEY = '` + randomHex + `'`},
			{"a.json", `  "client_secret": "` + random62 + `",`},
			{"a.rb", `  :password => "` + random62 + `"`},
			{".env.production", "SESSION_SECRET=" + randomHex},
			{"deploy.yaml", "  password: " + random62 + " # for now"},
			{"a.ts", `headers["auth-token"] = "` + random62 + `"`},
			{"a.java", `private static final String ACCESS_KEY = "` + random62 + `";`},
		},
		good: []sample{
			{"a.ts", `const apiKey = process.env.API_KEY;`},
			{"a.ts", `const apiKey = "your-api-key-12345-abc";`},
			{"a.ts", `const apiKey = "${randomFrom4Vault9x8y}";`},
			{"a.ts", `const apiKeyHeader = "X-Api-Key-V2-4f3a";`},
			{"a.go", `	passwordPrompt := "Enter the password:"`},
			{"a.go", `	password := "correct horse battery staple 42x7"`},
			{"a.go", `	secret := "billing-api-v2-prod01"`},
			{"a.go", `	token := "aaaaaaaa1111aaaa1111"`},
			{"a.go", `	token := lexer.next4x7y2z9w1q()`},
			{"a_test.go", `	password := "` + random62 + `"`},
			{"deploy.yaml", "  password: {{ .Values.dbPassword1a2b3c4d }}"},
			{"deploy.yaml", "  secretRef: file:" + random62},
			{"a.py", `    password: str = Field(min_length=12)`},
			{"package-lock.json", `  "token": "` + random62 + `"`},
			{"a.go", `	monkey := "` + random62 + `"`},
		},
	},
	"secret-file": { // the files are added in TestSecretFile
		good: []sample{{".env", "X=1"}},
	},
	"conflict-marker": {
		bad: []sample{
			{"a.go", "<<<<<<< HEAD\n+x\n+=======\n+y\n+>>>>>>> feature"},
			{"notes.md", ">>>>>>> feature"},
		},
		good: []sample{
			{"notes.rst", "Heading\n+======="},
			{"a.cpp", "std::cout <<<<<<< x;"},
			{"a.md", "    <<<<<<< HEAD, indented in an explanation"},
		},
	},
	"debugger-left": {
		bad: []sample{
			{"a.ts", "  debugger;"},
			{"a.py", "    import pdb; pdb.set_trace()"},
			{"a.py", "    breakpoint()"},
			{"a.rb", "  binding.pry"},
			{"a.go", "	runtime.Breakpoint()"},
		},
		good: []sample{
			{"a.ts", `  const debuggerEnabled = true;`},
			{"a.ts", `  log("debugger");`},
			{"a.py", "    # breakpoint()"},
			{"a.py", "    breakpoints.append(x)"},
			{"a.css", "debugger;"},
		},
	},
	"tls-verify-off": {
		bad: []sample{
			{"a.go", "	cfg := &tls.Config{InsecureSkipVerify: true}"},
			{"a.py", "    r = requests.get(url, verify=False)"},
			{"a.py", "    ctx = ssl._create_unverified_context()"},
			{"a.py", "    context.verify_mode = ssl.CERT_NONE"},
			{"a.ts", "  const agent = new https.Agent({ rejectUnauthorized: false });"},
			{"a.sh", "curl -sSf -k $URL"},
			{"a.rs", "    .danger_accept_invalid_certs(true)"},
		},
		good: []sample{
			{"a.go", "	cfg := &tls.Config{InsecureSkipVerify: opts.Insecure}"},
			{"a.go", "	// InsecureSkipVerify: true would be wrong here."},
			{"a_test.go", "	cfg := &tls.Config{InsecureSkipVerify: true}"},
			{"a.py", "    user.save(verify=False)"},
			{"a.py", "    if context.verify_mode != ssl.CERT_NONE:"},
			{"a.ts", "  rejectUnauthorized: true,"},
			{"a.sh", "curl -sSf $URL/-k"},
		},
	},
	"sql-concat": {
		bad: []sample{
			{"a.go", `	q := "SELECT id FROM users WHERE name = '" + name + "'"`},
			{"a.go", `	q := fmt.Sprintf("DELETE FROM users WHERE id = %s", id)`},
			{"a.py", `    cur.execute(f"SELECT * FROM users WHERE id = {user_id}")`},
			{"a.py", `    cur.execute("SELECT * FROM users WHERE id = %s" % user_id)`},
			{"a.ts", "  db.query(`SELECT * FROM users WHERE id = ${id}`);"},
			{"a.java", `    String q = "UPDATE users SET name = '" + name + "'";`},
			{"a.php", `    $q = 'SELECT a FROM b WHERE c = ' . $c;`},
		},
		good: []sample{
			{"a.go", `	row := db.QueryRow("SELECT id FROM users WHERE name = ?", name)`},
			{"a.go", `	q := "SELECT id FROM users " + "WHERE name = ?"`},
			{"a.go", `	q := "SELECT id FROM " + TableName`},
			{"a.go", `	msg := "Select a file from " + dir`},
			{"a.py", `    cur.execute("SELECT * FROM users WHERE id = %s", (user_id,))`},
			{"a.ts", "  await sql`SELECT * FROM users WHERE id = ${id}`;"},
			{"a.ts", "  // `SELECT * FROM users WHERE id = ${id}` is what not to do"},
			{"a_test.go", `	q := fmt.Sprintf("DELETE FROM users WHERE id = %s", id)`},
		},
	},
	"dynamic-eval": {
		bad: []sample{
			{"a.js", "  return eval(source);"},
			{"a.js", "  const f = new Function('x', body);"},
			{"a.py", "    value = eval(text)"},
			{"a.py", "exec(code, scope)"},
			{"a.php", "    eval($code);"},
		},
		good: []sample{
			{"a.py", "    model.eval()"},
			{"a.py", "    value = ast.literal_eval(text)"},
			{"a.py", "    def eval(self, x):"},
			{"a.js", "  const m = re.exec(text);"},
			{"a.js", "  await page.$eval('#x', f);"},
			{"a.js", "  // eval(source) would be wrong"},
			{"a.go", "	eval(x)"},
		},
	},
	"removed-test":  {}, // TestRemovedTest
	"disabled-test": {}, // TestDisabledTest
	"binary-file":   {}, // TestBinaryFile
	"debug-print": {
		bad: []sample{
			{"src/a.ts", `  console.log("here", x);`},
			{"store/a.go", `	fmt.Println("here", x)`},
			{"store/a.go", `	println(x)`},
			{"lib/a.py", `    print(file_name, "a=b", end="")`},
			{"src/a.rs", `    dbg!(&x);`},
			{"src/A.java", `    e.printStackTrace();`},
			{"src/a.php", `    var_dump($x);`},
			{"lib/a.rb", `  p value`},
		},
		good: []sample{
			{"src/a.ts", `  // console.log("here", x);`},
			{"src/a.ts", `  console.error("cannot start", err);`},
			{"src/a.ts", `  const hint = "use console.log(x) to debug";`},
			{"src/a.test.ts", `  console.log(x);`},
			{"scripts/a.ts", `  console.log(x);`},
			{"store/a.go", `	fmt.Fprintln(w, x)`},
			{"store/a.go", `	s := fmt.Sprintln(x)`},
			{"cmd/x/run.go", `	fmt.Println(x)`},
			{"main.go", `	fmt.Println(x)`},
			{"store/a_test.go", `	fmt.Println(x)`},
			{"gen.go", "package main\n+	fmt.Println(x)"},
			{"lib/a.py", `    print(x, file=out)`},
			{"lib/a.py", `    blueprint(x)`},
			{"lib/a.py", `    self.print(x)`},
			{"manage.py", `    print(x)`},
			{"lib/a.rb", `  p = value`},
			{"src/a.min.js", `console.log(1)`},
		},
	},
	"todo-no-owner": {
		bad: []sample{
			{"a.go", "	// TODO: handle errors"},
			{"a.py", "x = 1  # FIXME"},
			{"a.ts", "/* TODO make this faster */"},
			{"a.java", "     * TODO: document"},
			{"a.sql", "-- TODO drop this"},
			{"a.go", "	// TODO(): who?"},
		},
		good: []sample{
			{"a.go", "	// TODO(ada): handle errors"},
			{"a.go", "	// TODO(#123): handle errors"},
			{"a.py", "x = 1  # FIXME @ada"},
			{"a.ts", "// TODO: see BILL-412"},
			{"a.ts", "// TODO https://example.com/issues/1"},
			{"a.ts", "// TODO ada: rename"},
			{"a.go", `	s := "TODO"`},
			{"a.go", `	u := "http://x/TODO"`},
			{"notes.md", "# TODO"},
			{"a.go", "	// TODOs are listed elsewhere"},
			{"vendor/a.go", "	// TODO: theirs"},
			{"a.sh", `echo "${x#TODO}"`},
		},
	},
	"huge-hunk": {}, // TestHugeHunk
}

func TestRules(t *testing.T) {
	for _, rule := range Rules() {
		samples, ok := ruleSamples[rule.ID]
		if !ok {
			t.Errorf("%s has no samples", rule.ID)
		}
		t.Run(rule.ID, func(t *testing.T) {
			for _, s := range samples.bad {
				lines := strings.Split("+"+s.text, "\n")
				if got := hits(t, rule.ID, diffOf(s.path, lines...)); len(got) != 1 || got[0] < 10 || got[0] >= 10+len(lines) {
					t.Errorf("%s: %s\nfound at %v, want one finding", s.path, s.text, got)
				}
				// What was there before is not the author's, nor is what goes away.
				for _, op := range []string{" ", "-"} {
					old := op + strings.ReplaceAll(s.text, "\n+", "\n"+op)
					if got := hits(t, rule.ID, diffOf(s.path, strings.Split(old, "\n")...)); len(got) != 0 {
						t.Errorf("%s: %s\nfound at %v although no line is added", s.path, old, got)
					}
				}
			}
			for _, s := range samples.good {
				if got := hits(t, rule.ID, diffOf(s.path, strings.Split("+"+s.text, "\n")...)); len(got) != 0 {
					t.Errorf("%s: %s\nfound at %v, want nothing", s.path, s.text, got)
				}
			}
		})
	}
}

// Findings go to callers, logs and audit chains; the diff's secrets must not.
func TestMessagesQuoteNoSecrets(t *testing.T) {
	secrets := []string{awsKey, ghToken, ghPat, gitlab, npm, sendgrid, hook, slack, google, stripe, pemBody, "s3rv1ceP4ss", random62, randomHex}
	for _, rule := range []string{"leaked-key", "hardcoded-secret"} {
		for _, s := range ruleSamples[rule].bad {
			files, err := ParseDiff([]byte(diffOf(s.path, strings.Split("+"+s.text, "\n")...)))
			if err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%+v", Review(files, Low))
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s: the report holds the secret: %s", s.path, text)
				}
			}
		}
	}
}

func TestRuleTable(t *testing.T) {
	rules := Rules()
	id := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	var seen []string
	for i, rule := range rules {
		if !id.MatchString(rule.ID) || slices.Contains(seen, rule.ID) || rule.Doc == "" {
			t.Errorf("rule %+v: want a new name like this-one and a sentence", rule)
		}
		if i > 0 && rules[i-1].Severity < rule.Severity {
			t.Errorf("%s is more severe than %s before it", rule.ID, rules[i-1].ID)
		}
		seen = append(seen, rule.ID)
	}
}

func TestSecretFile(t *testing.T) {
	added := func(path string) string {
		return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\nnew file mode 100644\n--- /dev/null\n+++ b/%[1]s\n@@ -0,0 +1 @@\n+X=1\n", path)
	}
	for path, want := range map[string]bool{
		".env": true, "app/.env.production": true, "keys/id_rsa": true, "a/release.jks": true, "cert.p12": true,
		".env.example": false, "app/.env.sample": false, "id_rsa.pub": false, "tests/fixtures/cert.p12": false, "environment.ts": false, "cert.pem": false,
	} {
		got := hits(t, "secret-file", added(path))
		if want && !slices.Equal(got, []int{0}) || !want && len(got) != 0 {
			t.Errorf("%s: found at %v, want %t", path, got, want)
		}
	}
}

func TestBinaryFile(t *testing.T) {
	diff := func(path, mode string) string {
		return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n%[2]sindex 1..2\nBinary files a/%[1]s and b/%[1]s differ\n", path, mode)
	}
	tests := []struct {
		path, mode string
		want       bool
	}{
		{"bin/tool.exe", "new file mode 100755\n", true},
		{"lib/x.so", "", true},
		{"data.tar.gz", "", true},
		{"lib/x.so", "deleted file mode 100644\n", false},
		{"logo.png", "new file mode 100644\n", false},
		{"font.woff2", "", false},
	}
	for _, tt := range tests {
		if got := hits(t, "binary-file", diff(tt.path, tt.mode)); (len(got) == 1) != tt.want {
			t.Errorf("%s %q: found at %v, want %t", tt.path, tt.mode, got, tt.want)
		}
	}
}

func TestHugeHunk(t *testing.T) {
	lines := func(n int, op string) []string { return slices.Repeat([]string{op + "x"}, n) }
	tests := []struct {
		name, diff string
		want       []int
	}{
		{"long", diffOf("a.go", lines(300, "+")...), []int{10}},
		{"just short", diffOf("a.go", lines(299, "+")...), nil},
		{"removals count", diffOf("a.go", append(lines(150, "-"), lines(150, "+")...)...), []int{10}},
		{"context does not", diffOf("a.go", append(lines(299, " "), "+x")...), nil},
		{"prose", diffOf("a.md", lines(400, "+")...), nil},
		{"generated", diffOf("a.pb.go", lines(400, "+")...), nil},
		{"fixture", diffOf("testdata/a.go", lines(400, "+")...), nil},
		{"deleted file", strings.Replace(diffOf("a.go", lines(400, "-")...), "--- ", "deleted file mode 100644\n--- ", 1), nil},
	}
	for _, tt := range tests {
		if got := hits(t, "huge-hunk", tt.diff); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found at %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRemovedTest(t *testing.T) {
	tests := []struct {
		name, diff string
		want       []int
	}{
		{"Go", diffOf("a_test.go", " ", "-func TestA(t *testing.T) {", "-}"), []int{10}},
		{"Python", diffOf("test_a.py", "-    def test_a(self):"), []int{9}},
		{"JavaScript", diffOf("a.test.ts", `-  it("adds", () => {`, `-  it("subtracts", async () => {`), []int{9}},
		{"Java", diffOf("src/test/ATest.java", "-    @Test", "-    void a() {}"), []int{9}},
		{"Rust", diffOf("a.rs", "-    #[tokio::test]", "-    async fn a() {}"), []int{9}},
		{"renamed", diffOf("a_test.go", "-func TestA(t *testing.T) {", "+func TestB(t *testing.T) {"), nil},
		{"changed", diffOf("a_test.go", "-func TestA(t *testing.T) {", "+func TestA(t *testing.T) { // why"), nil},
		{"moved", diffOf("a_test.go", "-func TestA(t *testing.T) {") + diffOf("b_test.go", "+func TestA(t *testing.T) {"), nil},
		{"fewer", diffOf("a_test.go", "-func TestA(t *testing.T) {", "-func TestB(t *testing.T) {", "+func TestC(t *testing.T) {"), []int{9}},
		{"one moved here, one removed", diffOf("a_test.go", "-func TestA(t *testing.T) {", "-func TestB(t *testing.T) {") +
			diffOf("b_test.go", "+func TestB(t *testing.T) {"), []int{9}},
		{"file deleted", strings.Replace(diffOf("a_test.go", "-func TestA(t *testing.T) {"), "--- ", "deleted file mode 100644\n--- ", 1), []int{0}},
		{"not a test", diffOf("a_test.go", "-func helper(t *testing.T) {", "-// func TestOld(t *testing.T) {"), nil},
		{"a sentence", diffOf("a.md", "-func TestA(t *testing.T) {"), nil},
	}
	for _, tt := range tests {
		if got := hits(t, "removed-test", tt.diff); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found at %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRemovedTestMessage(t *testing.T) {
	files, err := ParseDiff([]byte(diffOf("a_test.go", "-func TestA(t *testing.T) {", "-func TestB(t *testing.T) {",
		"-func TestC(t *testing.T) {", "-func FuzzD(f *testing.F) {", "-func TestE(t *testing.T) {", "+func TestNew(t *testing.T) {")))
	if err != nil {
		t.Fatal(err)
	}
	const want = "5 tests removed and 1 added (TestA, TestB, TestC and 2 more); say why in the description, or keep the behaviour covered."
	if got := Review(files, Low).Findings; len(got) != 1 || got[0].Message != want {
		t.Errorf("got %+v\nwant %q", got, want)
	}
}

func TestDisabledTest(t *testing.T) {
	tests := []struct {
		name, diff string
		want       []int
	}{
		{"Go", diffOf("a_test.go", " func TestA(t *testing.T) {", `+	t.Skip("flaky")`), []int{11}},
		{"Go, on a condition", diffOf("a_test.go", " 	if testing.Short() {", `+		t.Skip("slow")`), nil},
		{"Go, deeper in", diffOf("a_test.go", "+	for range 3 {", `+		t.Skip("later")`), nil},
		{"Go, in a comment", diffOf("a_test.go", `+	// t.Skip("flaky")`), nil},
		{"Python", diffOf("test_a.py", "+@pytest.mark.skip"), []int{10}},
		{"Python, on a condition", diffOf("test_a.py", `+@pytest.mark.skipif(sys.platform == "win32")`), nil},
		{"JavaScript", diffOf("a.test.ts", `+  it.skip("adds", () => {`), []int{10}},
		{"JavaScript only", diffOf("a.test.ts", `+  describe.only("sums", () => {`), []int{10}},
		{"not a test file", diffOf("a.ts", `+  it.skip("adds", () => {`), nil},
		{"Rust", diffOf("src/a.rs", "+    #[ignore]"), []int{10}},
		{"Java", diffOf("src/test/ATest.java", "+    @Disabled"), []int{10}},
		{"a skip goes away", diffOf("a_test.go", `-	t.Skip("flaky")`), nil},
	}
	for _, tt := range tests {
		if got := hits(t, "disabled-test", tt.diff); !slices.Equal(got, tt.want) {
			t.Errorf("%s: found at %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestSplit(t *testing.T) {
	tests := []struct{ path, text, code, comment string }{
		{"a.go", `x := "a // b" // c`, `x := "      " `, "// c"},
		{"a.go", `x := '"' + "\"//" // c`, `x := ' ' + "    " `, "// c"},
		{"a.go", " * in a block", "", "* in a block"},
		{"a.go", "x = a / b /* c */", "x = a / b ", "/* c */"},
		{"a.py", `x = "#" # c`, `x = " " `, "# c"},
		{"a.rs", `fn f<'a>(x: &'a str) {} // c`, `fn f<'a>(x: &'a str) {} `, "// c"},
		{"a.sh", `echo ${x#y} $# # c`, `echo ${x#y} $# `, "# c"},
		{"a.go", `x := "unterminated // \`, `x := "                 `, ""},
	}
	for _, tt := range tests {
		code, comment := languageOf(tt.path).split(tt.text)
		if code != tt.code || comment != tt.comment {
			t.Errorf("%s: %s\n got %q, %q\nwant %q, %q", tt.path, tt.text, code, comment, tt.code, tt.comment)
		}
	}
}

// Code and comment make up the line, byte for byte.
func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a.go", "a.py", "a.rs", "a.sh", "a.php", "a.sql", "a.yaml", "a.ts"}).Draw(t, "name")
		text := rapid.StringMatching(`([ a-zé"'/*#:;-]|//|\\\\|\\"){0,30}`).Draw(t, "text")
		code, comment := languageOf(name).split(text)
		if comment == strings.TrimLeft(text, " \t") && code == "" {
			return // all comment
		}
		if len(code)+len(comment) != len(text) || !strings.HasSuffix(text, comment) {
			t.Fatalf("%q became %q and %q", text, code, comment)
		}
	})
}

// Code that is known to be good: released, reviewed packages. A high finding
// in it would be a false alarm, and false alarms are why reviewers are ignored.
func TestNoFalseAlarms(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(out)), "src")
	var files []File
	for _, pkg := range []string{"crypto/tls", "crypto/x509", "database/sql", "encoding/pem", "go/types", "net/http", "net/url", "text/template"} {
		names, err := filepath.Glob(filepath.Join(source, pkg, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no sources, %v", pkg, err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				files = append(files, addedFile(t, name, pkg+"/"+filepath.Base(name)))
			}
		}
	}
	for _, f := range Review(files, High).Findings {
		t.Errorf("%s:%d %s: %s", f.File, f.Line, f.Rule, f.Message)
	}
}

// addedFile is the change that adds the file with that name under a path.
func addedFile(t *testing.T, name, path string) File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	h := Hunk{NewStart: 1}
	for text := range strings.Lines(string(data)) {
		h.NewLines++
		h.Lines = append(h.Lines, Line{Add, h.NewLines, strings.TrimSuffix(text, "\n")})
	}
	return File{NewPath: path, Change: Added, Hunks: []Hunk{h}}
}
