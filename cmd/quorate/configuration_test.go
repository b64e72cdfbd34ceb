package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
)

// What a status tells a person to run must run where it was read: on a master whose document is an attribute, and nowhere a file.
func TestOnAMasterTheDocumentIsItsOwn(t *testing.T) {
	run := t.TempDir()
	document := "apiVersion: quorate.dev/v1alpha1\nkind: Cluster\nname: remembered\nendpoint: {externalIP: 10.240.0.100}\n" +
		"record: {url: \"file:///srv/bucket\"}\nseal: {key: \"base64key://AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}\n"
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
			var f clusterFlags
			cmd := &cobra.Command{}
			f.add(cmd)
			if err := cmd.ParseFlags(append(tc.args, "--record", "file:///srv/bucket")); err != nil {
				t.Fatal(err)
			}
			if tc.args == nil {
				f.config = "absent.yaml" // whatever this machine has
			}
			c, err := f.document(tc.run)
			if (err == nil) != (tc.want != "") || err == nil && c.Name != tc.want {
				t.Errorf("got %+v, %v; want cluster %q", c, err, tc.want)
			}
		})
	}
}
