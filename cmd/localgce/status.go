package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

// newStatus shows the project.
func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Show the project and its VMs", Args: exactly(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return printStatus(cmd) },
	}
	addOutput(cmd)
	return cmd
}

// addOutput gives a command that lists its flag -o.
func addOutput(cmd *cobra.Command) {
	cmd.Flags().StringP("output", "o", "", "json for scripts; a table where not given")
}

// wantsJSON reads the flag of addOutput.
func wantsJSON(cmd *cobra.Command) (bool, error) {
	f := cmd.Flags().Lookup("output")
	if f == nil || f.Value.String() == "" {
		return false, nil
	}
	if f.Value.String() != "json" {
		return false, &usageError{fmt.Errorf("--output %q: json is known", f.Value)}
	}
	return true, nil
}

func printStatus(cmd *cobra.Command) error {
	asJSON, err := wantsJSON(cmd)
	if err != nil {
		return err
	}
	c, err := client(cmd)
	if err != nil {
		return err
	}
	s, err := c.Status(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if asJSON {
		return printJSON(out, s)
	}
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "project\t%s, process %d, cluster %s\n", s.Project, s.PID, s.Cluster)
	fmt.Fprintf(t, "kind\t%s VMs\n", s.Kind)
	fmt.Fprintf(t, "subnet\t%s\n", s.Subnet)
	fmt.Fprintf(t, "endpoint\t%s to %s\n", s.Endpoint, backends(s))
	fmt.Fprintf(t, "compute API\t%s\n", s.ComputeEndpoint)
	fmt.Fprintf(t, "record\t%s\n", s.RecordURL)
	for _, d := range s.Partitions {
		fmt.Fprintf(t, "partition\t%s does not reach %s\n", d.From, d.To)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return printVMs(out, s.VMs)
}

func backends(s localgce.Status) string {
	switch {
	case len(s.Backends) == 0:
		return "no vm"
	case s.FailOpen:
		return strings.Join(s.Backends, ", ") + " (none is ready: all that run)"
	}
	return strings.Join(s.Backends, ", ")
}

func printVMs(out io.Writer, vms []localgce.VMStatus) error {
	t := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tZONE\tADDRESS\tINSTANCE\tSTATE\tAGENT\tRESTARTS\tSINCE\tSTATUS")
	for _, v := range vms {
		agent, since := "-", "-"
		if v.Agent.State != "" {
			agent, since = v.Agent.State, time.Since(v.Agent.Since).Round(time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			v.Name, v.Zone, v.Address, v.InstanceID, vmState(v), agent, v.Agent.Restarts, since, agentLine(v.Agent))
	}
	return t.Flush()
}

// vmState is the API's state with what localgce itself has done to the VM.
func vmState(v localgce.VMStatus) string {
	s := strings.ToLower(v.Status)
	if v.Frozen {
		s = "frozen"
	}
	if v.Cut {
		s += ", cut off"
	}
	return s
}

func agentLine(a localgce.AgentStatus) string {
	if a.Status == "" && a.LastExit != "" {
		return "ended: " + a.LastExit
	}
	return a.Status
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
