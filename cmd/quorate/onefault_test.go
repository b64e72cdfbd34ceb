package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/cluster"
)

// completed are the words that a command needs before anything else can be wrong. Of a command that is not here they
// are made of its usage.
var completed = map[string][]string{
	"record init":     {"--region", "us-central1", "--project-number", "1"},
	"record rebuild":  {"FILE"},
	"bundle export":   {"NEWFILE", "--passphrase-file", "PASSPHRASE"},
	"bundle import":   {"FILE", "--passphrase-file", "PASSPHRASE"},
	"snapshot verify": {"--newest"},
	"override":        {"unreachable-voter", "a1", "--reason", "r"},
}

// words stand for an argument of a usage.
var words = map[string]string{"N": "3", "REPLICA": "master-a", "NAME": "master-a", "MEMBER": "a1", "FILE": "FILE",
	"FILE...": "FILE", "DIR": "FILE", "TOKEN": "07401b"}

// asksNoRecord are commands that take a Cluster document and need no record, with what they do instead.
var asksNoRecord = map[string]string{
	"addons examples": "it prints what this program holds",
	"support":         "what cannot be read is named in its file",
	"health":          "that the record cannot be read is a part of its verdict",
	"bundle import":   "it reads its file first, and no test can make one here",
	"run-etcd":        "its --config is the agent's own file",
}

// bench is what the faults are made with.
type bench struct {
	dir string
	// refused is a document whose record nobody serves.
	refused string
}

// good are a command's words with nothing wrong in them, but for the file that they name.
func (b bench) good(t *testing.T, path string, cmd *cobra.Command, file string) []string {
	args, known := completed[path]
	if !known {
		for _, word := range strings.Fields(cmd.Use)[1:] {
			if strings.HasPrefix(word, "[") {
				continue
			}
			value, ok := words[word]
			if !ok {
				t.Fatalf("quorate %s: this test does not know what %s of its usage stands for", path, word)
			}
			args = append(args, value)
		}
	}
	args = slices.Clone(args)
	for i, arg := range args {
		switch arg {
		case "FILE":
			args[i] = filepath.Join(b.dir, file)
		case "NEWFILE":
			args[i] = filepath.Join(b.dir, "absent")
		case "PASSPHRASE":
			args[i] = filepath.Join(b.dir, "passphrase")
		}
	}
	return append(strings.Fields(path), args...)
}

// leaves are all commands that do something, by their path.
func leaves(cmd *cobra.Command, path []string, do func(path string, cmd *cobra.Command)) {
	if len(path) > 0 && (!cmd.HasSubCommands() || cmd.Flags().Lookup("config") != nil) { // "orders" does both
		do(strings.Join(path, " "), cmd)
	}
	for _, c := range cmd.Commands() {
		leaves(c, append(slices.Clone(path), c.Name()), do)
	}
}

func hasOutput(cmd *cobra.Command) bool { return cmd.Flags().ShorthandLookup("o") != nil }

func takesDocument(cmd *cobra.Command) bool {
	return !cmd.Hidden && cmd.Flags().Lookup("config") != nil
}

// TestOneKindOfFaultHasOneCode makes the same mistakes with every command there is.
func TestOneKindOfFaultHasOneCode(t *testing.T) {
	t.Setenv(cluster.ConfigVariable, "")
	before := surveyWait
	surveyWait = time.Second // nobody answers
	t.Cleanup(func() { surveyWait = before })
	b := makeBench(t)
	document := func(name string) func(string, *cobra.Command) []string {
		return func(_ string, cmd *cobra.Command) []string {
			if !takesDocument(cmd) {
				return nil
			}
			return []string{"--config", filepath.Join(b.dir, name)}
		}
	}
	for name, fault := range map[string]struct {
		code int
		says string
		// add is what is added to a good command; nil: this command cannot have the fault.
		add func(path string, cmd *cobra.Command) []string
	}{
		"a flag that is not known": {exitUsage, "unknown flag: --no-such-flag",
			func(string, *cobra.Command) []string { return []string{"--no-such-flag"} }},
		"JSON is wanted behind a flag that is not known": {exitUsage, `"code": 2`,
			func(_ string, cmd *cobra.Command) []string {
				if f := cmd.Flags().Lookup("output"); f != nil && !hasOutput(cmd) {
					return nil // a file
				}
				return []string{"--no-such-flag", "-o", "json"}
			}},
		"an output that is not known": {exitUsage, `--output "xml": json and yaml are allowed`,
			func(_ string, cmd *cobra.Command) []string {
				if !hasOutput(cmd) {
					return nil
				}
				return []string{"-o", "xml"}
			}},
		"a word too many": {exitUsage, "", func(_ string, cmd *cobra.Command) []string {
			if strings.Contains(cmd.Use, "...") || cmd.Args == nil {
				return nil
			}
			return []string{"one", "two", "three"}
		}},
		"no document is there":            {exitConfig, "no such file or directory", document("absent.yaml")},
		"the document is a folder":        {exitConfig, "is a directory", document(".")},
		"the document is a web page":      {exitConfig, "", document("page.yaml")},
		"the document lacks nearly all":   {exitConfig, "", document("short.yaml")},
		"the document's name is empty":    {exitUsage, "--config is empty", document("")},
		"the record cannot be reached":    {exitRecord, "", b.unreachable},
		"no agent runs":                   {exitNoAgent, "no agent answers on this machine", b.noAgent},
		"a file that is named is missing": {exitFile, "no such file or directory", b.noFile},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			leaves(newRoot(), nil, func(path string, cmd *cobra.Command) {
				added := fault.add(path, cmd)
				if added == nil {
					return
				}
				if name == "the document's name is empty" {
					added[1] = ""
				}
				tried++
				t.Run(path, func(t *testing.T) {
					t.Parallel() // a record that cannot be reached is asked for three seconds
					file := "said.json"
					if fault.code == exitFile {
						file = "absent"
					}
					args := append(b.good(t, path, cmd, file), added...)
					var out, errs strings.Builder
					if got := run(args, &out, &errs); got != fault.code {
						t.Errorf("quorate %s: exit code %d, want %d:\n%s%s", strings.Join(args, " "), got, fault.code,
							out.String(), errs.String())
					}
					findings := path == "record check" && fault.code == exitRecord // that it cannot be reached is one
					if !strings.Contains(errs.String(), fault.says) || errs.Len() == 0 || out.Len() > 0 && !findings {
						t.Errorf("quorate %s: want %q on standard error alone; it says %q, and prints %q",
							strings.Join(args, " "), fault.says, errs.String(), out.String())
					}
					wanted := added[len(added)-1] == "json"
					if isJSON := json.Valid([]byte(errs.String())); isJSON != wanted {
						t.Errorf("quorate %s: JSON %v, want %v: %s", strings.Join(args, " "), isJSON, wanted,
							errs.String())
					}
				})
			})
			if tried == 0 {
				t.Error("no command can have this fault: the test knows the commands no longer")
			}
		})
	}
}

// TestWhoIsNotRootIsTold runs each command that speaks with a master's agent as a user who may not.
func TestWhoIsNotRootIsTold(t *testing.T) {
	run, err := nobody(t.Cleanup)
	if err != nil {
		t.Fatal(err)
	}
	b := makeBench(t)
	closed := t.TempDir()
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	leaves(newRoot(), nil, func(path string, cmd *cobra.Command) {
		if cmd.Hidden || cmd.Flags().Lookup("run-dir") == nil {
			return
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			args := append(b.good(t, path, cmd, "said.json"), "--run-dir", closed)
			switch path {
			case "etcd start-anyway":
				args = append(args, "--yes")
			case "record rebuild":
				args = []string{"record", "rebuild", "--collect", "-", "--run-dir", closed}
			}
			code, out, err := run(args...)
			if err != nil {
				t.Fatal(err)
			}
			if code != exitNotRoot || !strings.Contains(out, "root") {
				t.Errorf("quorate %s: exit code %d, want %d: %s", strings.Join(args, " "), code, exitNotRoot, out)
			}
		})
	})
}

// unreachable is a document with a record that nobody serves.
func (b bench) unreachable(path string, cmd *cobra.Command) []string {
	if !takesDocument(cmd) || asksNoRecord[path] != "" {
		return nil
	}
	return []string{"--config", b.refused}
}

// noAgent is a folder in which no agent is.
func (b bench) noAgent(path string, cmd *cobra.Command) []string {
	if os.Geteuid() != 0 && path != "status" {
		return nil // that it needs root comes first
	}
	if cmd.Hidden || cmd.Flags().Lookup("run-dir") == nil || path == "agent" || path == "config show" ||
		path == "support" {
		return nil
	}
	added := []string{"--run-dir", b.dir}
	switch path {
	case "record rebuild":
		return nil // with --collect, see rebuild.txtar
	case "etcd start-anyway":
		added = append(added, "--yes")
	}
	return added
}

// noFile is of commands that read a file which is no Cluster document.
func (b bench) noFile(path string, _ *cobra.Command) []string {
	if path != "bundle import" && path != "record rebuild" {
		return nil
	}
	return []string{"--config", b.refused}
}

func makeBench(t *testing.T) bench {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody answers there now
	b := bench{dir: t.TempDir()}
	for name, text := range map[string]string{
		"page.yaml":  "<html></html>\n",
		"short.yaml": "apiVersion: quorate.dev/v1alpha1\nkind: Cluster\n",
		"said.json":  "{}\n",
		"passphrase": "a passphrase of some length\n",
		"refused.yaml": fmt.Sprintf("apiVersion: quorate.dev/v1alpha1\nkind: Cluster\nname: demo\nreplicas: 3\n"+
			"endpoint: {externalIP: 10.0.0.1}\nrecord: {url: 'gs://record?endpoint=http://%s'}\n"+
			"seal: {key: 'base64key://%s='}\ncompute: {endpoint: 'http://%s/compute/v1/'}\n"+
			"gce: {project: example, region: us-central1, zones: [us-central1-a], image: quorate,\n"+
			"  serviceAccount: prod-1-master@example.iam.gserviceaccount.com}\n", l.Addr(), strings.Repeat("A", 43),
			l.Addr()),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.refused = filepath.Join(b.dir, "refused.yaml")
	return b
}
