package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// newAttribute changes instance attributes; agents that watch them wake.
func newAttribute() *cobra.Command {
	var all, remove bool
	set := &cobra.Command{
		Use: "set {NAME|--all} KEY=FILE", Short: "Set an instance attribute, or remove it with --remove", Args: exactly(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, pair := "", args[len(args)-1]
			if len(args) == 2 {
				name = args[0]
			}
			if all == (name != "") {
				return &usageError{errors.New("either a vm's name or --all is needed")}
			}
			key, value := pair, (*string)(nil)
			if !remove {
				k, v, err := readAttribute(pair)
				if err != nil {
					return &usageError{err}
				}
				key, value = k, &v
			}
			c, err := client(cmd)
			if err == nil {
				err = c.SetAttribute(cmd.Context(), name, key, value)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is changed\n", key)
			}
			return err
		},
	}
	set.Flags().BoolVar(&all, "all", false, "for every VM")
	set.Flags().BoolVar(&remove, "remove", false, "remove the attribute; the argument is then KEY alone")
	return group(&cobra.Command{Use: "attribute", Short: "Change instance attributes"}, set)
}
