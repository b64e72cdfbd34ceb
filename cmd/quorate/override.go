package main

import (
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/command"
	"github.com/quorate/quorate/cmd/quorate/terminal"
	"github.com/quorate/quorate/etcdmember/order"
)

func newOverride() *cobra.Command {
	var f orderFlags
	var reason string
	cmd := &cobra.Command{Use: "override ROW MEMBER", Short: "Let the agents do what only a person can answer for",
		Long: `Let the agents do what only a person can answer for. Two rows of the membership's table can be overridden, each for one member,
which is named by its id as "quorate status" prints it:

  unreachable-voter  the member is unreachable, and nothing proves that its VM is gone:
                     it is removed all the same
  members-differ     the members' data differ, and no majority says who is wrong:
                     this member is, and it is replaced

The rows' numbers, 42 and 47, are taken, too. It says what that risks, and asks.`,
		Example: `  quorate override unreachable-voter 8e9e05c52164694d --reason "the zone is lost, ticket 4711"`,
		Args:    command.Exactly("ROW", "MEMBER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := order.CheckRow(args[0])
			if err != nil {
				return err
			}
			if err := command.Needed(cmd, "reason"); err != nil {
				return err
			}
			return give(cmd, &f, func(l order.Log) (order.Draft, error) {
				return l.CheckOverride(row, args[1],
					reason)
			})
		}}
	f.add(cmd)
	cmd.ValidArgsFunction = command.Completing(command.Fixed("unreachable-voter", "members-differ"))
	terminal.AddYes(cmd, &f.yes)
	cmd.Flags().StringVar(&reason, "reason", "", "why you are sure, for those who read the orders later")
	return cmd
}
