package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/quorate/quorate/addons/plan"
	"github.com/quorate/quorate/agent"
)

// addonRules asks this program what the add-on manager must be allowed to do. The answer needs kustomize, whose memory
// the agent does not keep.
func addonRules(log *slog.Logger, self string) func(ctx context.Context, folder string) ([]plan.Rule, error) {
	return func(ctx context.Context, folder string) ([]plan.Rule, error) {
		stdout, err := agent.SelfRun{Self: self, Env: os.Environ(), Log: log, OOMScore: saveOOMScore,
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
