package readme

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/localgce/buckets"
)

// The README is true: its document is valid, its commands exist with the flags that it gives them, and those that need
// no master are run here. The ones marked `demo` are run against the demo by check-demo.sh.

// block is a fenced block of a page.
type block struct {
	language, mark string
	lines          []string
}

func blocks(t *testing.T, page string) []block {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^```([a-z]*) ?([a-z]*)\n(.*?)^```$")
	var out []block
	for _, m := range fence.FindAllStringSubmatch(read(t, page), -1) {
		out = append(out, block{m[1], m[2], strings.Split(strings.TrimSpace(m[3]), "\n")})
	}
	return out
}

// commands are the command lines of a page's sh blocks with one of the marks, without comments; a line may hold
// several.
func commands(t *testing.T, page string, marks ...string) []string {
	t.Helper()
	var out []string
	for _, b := range blocks(t, page) {
		if b.language != "sh" || !slices.Contains(marks, b.mark) {
			continue
		}
		for _, line := range b.lines {
			line, _, _ = strings.Cut(line, " #")
			for _, c := range strings.Split(line, ";") {
				if c = strings.TrimSpace(c); c != "" {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

func TestTheReadmeMarksItsBlocks(t *testing.T) {
	for _, b := range blocks(t, "README.md") {
		if b.language == "sh" && !slices.Contains([]string{"", "demo", "operator"}, b.mark) {
			t.Errorf("the README has a block marked %q, which nothing runs", b.mark)
		}
	}
	for _, mark := range []string{"", "demo", "operator"} {
		if len(commands(t, "README.md", mark)) == 0 {
			t.Errorf("the README has no command marked %q: this test no longer finds them", mark)
		}
	}
}

func TestTheReadmesCommandsExist(t *testing.T) {
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "docs/first-hour.md"} {
		for _, c := range commands(t, page, "", "demo", "operator") {
			t.Run(page+"/"+c, func(t *testing.T) {
				t.Parallel()
				commandExists(t, words(t, c))
			})
		}
	}
}

// commandExists asks the program for the command's help with the flags of the README before it: an unknown flag is then
// an error, and the usage names the command that was found.
func commandExists(t *testing.T, line []string) {
	program, args := filepath.Base(line[0]), line[1:]
	var inner []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, inner = args[:i], args[i+1:]
	}
	switch program {
	case "make":
		run(t, top, "make", append([]string{"--dry-run"}, args...)...)
		return
	case "kubectl":
		path, err := filepath.Abs(filepath.Join(top, "bin/kubectl"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skip("bin/kubectl is not built: make kubernetes")
		}
		if out := run(t, top, path, append(args, "--help")...); !strings.Contains(out, "kubectl "+firstWord(args)) {
			t.Errorf("kubectl has no such command: %s", out)
		}
		return
	case "quorate", "localgce":
	default:
		t.Fatalf("the README calls %s, which this test does not know", program)
	}
	out := helpOf(t, program, args)
	// `quorate orders` does both
	if strings.Contains(out, "\nAvailable Commands:\n") && !strings.Contains(out, "--config") {
		t.Errorf("%q is no whole command: its help lists commands", line)
	}
	if len(inner) > 0 {
		commandExists(t, inner)
	}
}

// helpOf asks a program of ours for the help of a command line, and checks that the usage is that of the command that
// the line names.
func helpOf(t *testing.T, program string, args []string) string {
	t.Helper()
	out := run(t, top, filepath.Join(programs(t), program), append(slices.Clone(args), "--help")...)
	_, usage, _ := strings.Cut(out, "Usage:\n  ")
	usage, _, _ = strings.Cut(usage, "\n")
	for i, word := range strings.Fields(usage) {
		if strings.ToLower(word) != word || strings.HasPrefix(word, "[") || word == "--" {
			break // the command's own arguments begin here
		}
		if given := append([]string{program}, args...); i >= len(given) || given[i] != word {
			t.Errorf("the usage is %q, which is not the command of %q", usage, given)
		}
	}
	return out
}

func firstWord(args []string) string {
	value := false // the word before was a flag that takes a value
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-"):
			value = !strings.Contains(a, "=")
		case value:
			value = false
		default:
			return a
		}
	}
	return ""
}

func TestTheDocumentsOfThePagesAreValid(t *testing.T) {
	for page, count := range map[string]int{"README.md": 1, "docs/gce.md": 2} {
		found := clusterDocuments(t, page)
		if len(found) != count {
			t.Errorf("%s has %d Cluster documents, want %d", page, len(found), count)
		}
		for _, document := range found {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(document), 0o600); err != nil {
				t.Fatal(err)
			}
			out := run(t, dir, filepath.Join(programs(t), "quorate"), "config", "validate", "cluster.yaml")
			if want := "cluster prod-1: valid\n"; out != want {
				t.Errorf("%s: quorate config validate says %q, want %q of\n%s", page, out, want, document)
			}
		}
	}
}

// clusterDocuments are the Cluster documents of a page, also those in a list.
func clusterDocuments(t *testing.T, page string) (out []string) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")
	for _, m := range fence.FindAllStringSubmatch(read(t, page), -1) {
		document := strings.ReplaceAll("\n"+m[2], "\n"+m[1], "\n")
		if strings.Contains(document, "\nkind: Cluster\n") {
			out = append(out, document)
		}
	}
	return out
}

// documentFolder is a folder with a page's document as cluster.yaml.
func documentFolder(t *testing.T, page string) string {
	t.Helper()
	dir := t.TempDir()
	for _, b := range blocks(t, page) {
		if b.language == "yaml" {
			if err := os.WriteFile(filepath.Join(dir, "cluster.yaml"), []byte(strings.Join(b.lines, "\n")+"\n"),
				0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Fatalf("%s has no document", page)
	return ""
}

func TestTheReadmesOperatorCommandsRun(t *testing.T) {
	dir := documentFolder(t, "README.md")
	bucket, stop, err := buckets.Serve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, c := range commands(t, "README.md", "operator") {
		line := words(t, c)
		if slices.Contains([]string{"record", "pause", "resume", "orders", "snapshot"}, line[1]) {
			line = append(line, "--record", bucket) // the document's is Google's
		}
		out := run(t, dir, filepath.Join(programs(t), line[0]), line[1:]...)
		if strings.TrimSpace(out) == "" {
			t.Errorf("%s printed nothing", c)
		}
	}
	shown := run(t, dir, filepath.Join(programs(t), "quorate"), "record", "show", "--config", "cluster.yaml",
		"--record", bucket)
	if !strings.Contains(shown, "cluster prod-1, ") || !strings.Contains(shown, "project 123456789012") {
		t.Errorf("the record that the README's commands began shows as %q", shown)
	}
}

func TestTheDemoSaysWhatTheReadmeSays(t *testing.T) {
	_, next, ok := strings.Cut(read(t, "test/demo.sh"), "Next:\n")
	if !ok {
		t.Fatal("test/demo.sh no longer says what is next")
	}
	next, _, _ = strings.Cut(next, "TEXT")
	said := commands(t, "README.md", "demo")
	for _, line := range strings.Split(strings.TrimSpace(next), "\n") {
		line, _, _ = strings.Cut(line, " #")
		for _, c := range strings.Split(line, ";") {
			if !slices.Contains(said, strings.TrimSpace(c)) {
				t.Errorf("the demo ends with %q, which the README does not run", strings.TrimSpace(c))
			}
		}
	}
}

// words splits a command line at blanks, as a shell does; single quotes hold a word together.
func words(t *testing.T, line string) []string {
	t.Helper()
	if strings.ContainsAny(line, "\"$`\\|&<>(){}") {
		t.Fatalf("%s: this test does not know the shell's other signs", line)
	}
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|([^ ']+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// programs is the folder with quorate and localgce as they are now, built once for all tests.
func programs(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join(top, "bin", ".test"))
	if err != nil {
		return "", err
	}
	// Those that `make build` has made of the same tree are left as they are: linking takes a core many seconds.
	made := exec.Command("cp", "-u", "--remove-destination", "bin/quorate", "bin/localgce", dir+"/")
	made.Dir = top
	_ = errors.Join(os.MkdirAll(dir, 0o755), made.Run()) // where there are none, go makes them
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", dir+"/", "./cmd/quorate", "./cmd/localgce")
	cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w: %s", err, out)
	}
	return dir, nil
})

// run runs a program and returns what it prints; that it fails is the test's failure.
func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s %q: %v: %s", filepath.Base(program), args, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return string(out)
}
