package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

// What a status tells a person to run must run where it was read: on a master whose document is an attribute, and
// nowhere a file.
func TestOnAMasterTheDocumentIsItsOwn(t *testing.T) {
	run := t.TempDir()
	document := "apiVersion: quorate.dev/v1alpha1\nkind: Cluster\nname: remembered\nendpoint: {externalIP: " +
		"10.240.0.100}\n" +
		"record: {url: \"gs://record?endpoint=http://192.0.2.1\"}\nseal: {key: " +
		"\"base64key://AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}\n"
	b, err := json.Marshal(map[string]any{"self": map[string]any{"instanceID": "100"}, "document": document})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "identity.json"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		run  string
		args []string
		want string
	}{
		"a master":               {run: run, want: "remembered"},
		"a master, another file": {run: run, args: []string{"--config", "absent.yaml"}},
		"no master":              {run: t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			var f Flags
			cmd := &cobra.Command{}
			f.Add(cmd)
			if err := cmd.ParseFlags(append(tc.args, "--record", "gs://record?endpoint=http://192.0.2.1")); err != nil {
				t.Fatal(err)
			}
			if tc.args == nil {
				f.Config = "absent.yaml" // whatever this machine has
			}
			c, err := f.document(tc.run)
			if (err == nil) != (tc.want != "") || err == nil && c.Name != tc.want {
				t.Errorf("got %+v, %v; want cluster %q", c, err, tc.want)
			}
		})
	}
}

// What a person is told to run reaches the cluster in the way in which this command did.
func TestAHintNamesWhatWasGiven(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "quorate resume"},
		{[]string{"--config", "a.yaml"}, "quorate resume --config a.yaml"},
		{[]string{"--config", "it's a.yaml", "--record", "gs://b"},
			`quorate resume --config 'it'\''s a.yaml' --record gs://b`},
	} {
		var f Flags
		cmd := &cobra.Command{}
		f.Add(cmd)
		if err := cmd.ParseFlags(tc.args); err != nil {
			t.Fatal(err)
		}
		if got := f.Again("quorate resume"); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.args, got, tc.want)
		}
	}
}

func TestAnEmptyFlagIsRefused(t *testing.T) {
	for _, flag := range []string{"config", "record"} {
		var f Flags
		cmd := &cobra.Command{}
		f.Add(cmd)
		if err := cmd.ParseFlags([]string{"--" + flag + "="}); err != nil {
			t.Fatal(err)
		}
		var usage *fault.UsageError
		if _, err := f.Load(); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--"+flag+" is empty") {
			t.Errorf("--%s=: %v", flag, err)
		}
	}
}

// A record that is only read needs no key, and so no rule of where a key may stand.
func TestAnotherRecordNeedsNoKeyToBeRead(t *testing.T) {
	document := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(document, []byte("apiVersion: quorate.dev/v1alpha1\nkind: Cluster\nname: demo\n"+
		"endpoint: {externalIP: 192.0.2.1}\nrecord: {url: \"gs://record?endpoint=http://192.0.2.1\"}\n"+
		"seal: {key: \"base64key://AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := func(record string) *Flags {
		var f Flags
		cmd := &cobra.Command{}
		f.Add(cmd)
		if err := cmd.ParseFlags([]string{"--config", document, "--record", record}); err != nil {
			t.Fatal(err)
		}
		return &f
	}
	if c, err := flags("gs://other").Load(); err != nil || c.Record.URL != "gs://other" {
		t.Errorf("to read it: %+v, %v", c, err)
	}
	var usage *fault.UsageError
	if c, err := flags("gs://other").LoadWithKey(); !errors.As(err, &usage) ||
		!strings.Contains(err.Error(), "--record: seal.key: found a base64key:// key that is not shown") {
		t.Errorf("with the key: %+v, %v", c, err)
	}
	if _, err := flags("gs://other?endpoint=http://192.0.2.1").LoadWithKey(); err != nil {
		t.Errorf("in a stand-in, with the key: %v", err)
	}
	if _, err := flags("s3://other").Load(); !errors.As(err, &usage) {
		t.Errorf("no record: %v", err)
	}
}
