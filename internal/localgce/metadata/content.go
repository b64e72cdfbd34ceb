package metadata

import (
	"cmp"
	"fmt"

	"github.com/quorate/quorate/internal/localgce/instance"
)

const accountEmail = "default"

// named keeps the keys of attributes as they are, where all others are camel-cased in JSON.
type named map[string]string

// treeOf is the metadata server's content below /computeMetadata/v1/, with the keys of its paths.
func treeOf(i instance.VM) map[string]any {
	zone := fmt.Sprintf("projects/%d/zones/%s", instance.ProjectNumber, i.Zone)
	accounts := map[string]any{}
	for _, a := range i.ServiceAccounts() {
		account := map[string]any{"aliases": []string{accountEmail}, "email": a.Email, "scopes": a.Scopes,
			"token": accessToken{}}
		accounts[accountEmail], accounts[a.Email] = account, account
	}
	return map[string]any{
		"instance": map[string]any{
			"attributes":         named(i.Attributes),
			"cpu-platform":       "Intel Broadwell",
			"description":        "",
			"disks":              diskTree(),
			"hostname":           i.Name + "." + i.Zone + ".c." + instance.ProjectID + ".internal",
			"id":                 i.ID,
			"image":              i.Made.Image,
			"machine-type":       fmt.Sprintf("projects/%d/machineTypes/%s", instance.ProjectNumber, i.MachineType()),
			"maintenance-event":  cmp.Or(i.Maintenance, "NONE"),
			"name":               i.Name,
			"network-interfaces": []any{interfaceTree(i)},
			"preempted":          "FALSE",
			"scheduling":         scheduling(i.Spot),
			"service-accounts":   accounts,
			"tags":               append([]string{}, i.Made.Tags...),
			"zone":               zone,
		},
		"project": map[string]any{
			"attributes":         named{},
			"numeric-project-id": uint64(instance.ProjectNumber),
			"project-id":         instance.ProjectID,
		},
	}
}

// scheduling is a VM's as GCE shows it: a Spot VM neither moves nor starts again.
func scheduling(spot bool) map[string]any {
	if spot {
		return map[string]any{"automatic-restart": "FALSE", "on-host-maintenance": "TERMINATE", "preemptible": "TRUE"}
	}
	return map[string]any{"automatic-restart": "TRUE", "on-host-maintenance": "MIGRATE", "preemptible": "FALSE"}
}

func diskTree() []any {
	entry := func(index int, device string) any {
		return map[string]any{"device-name": device, "index": uint64(index), "interface": "SCSI", "mode": "READ_WRITE",
			"type": "PERSISTENT-BALANCED"}
	}
	return []any{entry(0, "persistent-disk-0"), entry(1, instance.DeviceName)}
}

func interfaceTree(i instance.VM) any {
	forwarded := []string{}
	for _, a := range i.Forwarded {
		forwarded = append(forwarded, a.String())
	}
	access := []any{}
	if i.ExternalIP.IsValid() {
		access = append(access, map[string]any{"external-ip": i.ExternalIP.String(), "type": "ONE_TO_ONE_NAT"})
	}
	return map[string]any{
		"access-configs": access, "forwarded-ips": forwarded, "ip": i.Address.String(), "ip-aliases": []string{},
		"mac": instance.MAC(i.Address), "mtu": uint64(instance.MTU), "network": fmt.Sprintf("projects/%d/networks/default",
			instance.ProjectNumber),
		"target-instance-ips": []string{},
	}
}
