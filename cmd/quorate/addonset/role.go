package addonset

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/addons"
	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
)

// user is the add-on manager in the cluster.
const user = "quorate:addons"

// roleList is the role and its binding, as kubectl takes them.
type roleList struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []roleObject `json:"items"`
}

type roleObject struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Rules      []plan.Rule       `json:"rules,omitempty"`
	RoleRef    map[string]string `json:"roleRef,omitempty"`
	Subjects   []map[string]any  `json:"subjects,omitempty"`
}

func newRole() *cobra.Command {
	var f folderFlags
	var output string
	cmd := &cobra.Command{
		Use: "role", Short: "Print the ClusterRole that the folder needs, for kubectl apply", Args: command.NoArguments,
		Long: `Print what the add-on manager must be allowed to do for a folder, as a ClusterRole and its binding,
for kubectl apply. The agents grant the same by themselves. It is the least that is enough: each object by its name.
Nobody is asked.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.fill(false); err != nil {
				return err
			}
			rules, faults := addons.Rules(f.folder)
			for _, fault := range faults {
				fmt.Fprintln(cmd.ErrOrStderr(), "quorate: not in the role: "+fault)
			}
			list := roleOf(rules)
			return terminal.PrintAs(cmd.OutOrStdout(), output, list, func(w io.Writer) {
				for _, item := range list.Items {
					b, err := yaml.Marshal(item)
					if err != nil {
						panic(err) // maps and lists of strings
					}
					fmt.Fprintf(w, "---\n%s", b)
				}
			})
		},
	}
	f.add(cmd)
	command.AddOutput(cmd, &output)
	return cmd
}

func roleOf(rules []plan.Rule) roleList {
	const rbac = "rbac.authorization.k8s.io"
	name := map[string]string{"name": user}
	return roleList{APIVersion: "v1", Kind: "List", Items: []roleObject{
		{APIVersion: rbac + "/v1", Kind: "ClusterRole", Metadata: name, Rules: rules},
		{APIVersion: rbac + "/v1", Kind: "ClusterRoleBinding", Metadata: name,
			RoleRef:  map[string]string{"apiGroup": rbac, "kind": "ClusterRole", "name": user},
			Subjects: []map[string]any{{"apiGroup": rbac, "kind": "User", "name": user}}},
	}}
}

// Rules asks this program, whose file is self, what the add-on manager must be allowed to do. The answer needs
// kustomize, whose memory the agent does not keep. The process is the first to go when memory is short, by its OOM
// score.
func Rules(log *slog.Logger, self string, oomScore int) func(ctx context.Context, folder string) ([]plan.Rule, error) {
	return func(ctx context.Context, folder string) ([]plan.Rule, error) {
		stdout, err := agent.SelfRun{Self: self, Env: os.Environ(), Log: log, OOMScore: oomScore,
			Args: []string{"addons", "role", "--folder=" + folder, "-o", "json"}}.Run(ctx)
		if err != nil {
			return nil, err
		}
		var list roleList
		if err := json.Unmarshal(stdout, &list); err != nil {
			return nil, fmt.Errorf("decode the role: %w", err)
		}
		for _, item := range list.Items {
			if item.Kind == "ClusterRole" {
				return item.Rules, nil
			}
		}
		return nil, fmt.Errorf("decode the role: found none in %q", stdout)
	}
}
