package test

import (
	"fmt"
	"testing"
)

// TestFirstBootsAtTheSameMoment makes cluster after cluster, each from three VMs that start together and race for the
// claim: 3 of them, 20 for chaos. Each ends when there are three voters; that the control plane follows is shown
// elsewhere.
func TestFirstBootsAtTheSameMoment(t *testing.T) {
	rounds := 3
	if chaos {
		rounds = 20
	}
	seeders := map[string]int{}
	for i := range rounds {
		ok := t.Run(fmt.Sprintf("round %d gives one cluster", i+1), func(t *testing.T) {
			c := begin(t, plan{vms: []string{"master-a", "master-b", "master-c"}})
			await(t, "three voters", func() error {
				for _, vm := range c.vms {
					s, err := c.status(vm)
					if err != nil {
						return err
					}
					if len(voters(s)) != 3 || len(s.Etcd.Members) != 3 {
						return fmt.Errorf("%s is in phase %s, sees %+v, is blocked: %+v", vm, s.Replica.Phase,
							s.Etcd.Members, s.Blocked)
					}
				}
				return nil
			})
			c.wantOneCluster(t)
			seeders[c.seeder(t)]++
		})
		if !ok {
			return
		}
	}
	t.Logf("seeded by: %v", seeders)
}
