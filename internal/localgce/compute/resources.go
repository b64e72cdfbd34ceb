package compute

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// resource is a resource of compute/v1 in its JSON form: ids are strings, times RFC 3339, links whole URLs.
type resource map[string]any

// place is where a resource is, as zones/ZONE or regions/REGION.
func (r resource) place() string {
	if zone, ok := r["zone"].(string); ok {
		return "zones/" + path.Base(zone)
	}
	region, _ := r["region"].(string)
	return "regions/" + path.Base(region)
}

// timestamp is the API's form of times.
func timestamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-07:00") }

// diskPlace is where an instance's data disk is: in the instance's zone, or in its region.
func (i shown) diskPlace(base string) string {
	if i.regional {
		return base + "/regions/" + instance.RegionOf(i.Zone)
	}
	return base + "/zones/" + i.Zone
}

func instanceResource(base string, i shown) resource {
	zone := base + "/zones/" + i.Zone
	disk := func(index int, device, source string, goes bool) map[string]any {
		return map[string]any{
			"kind": "compute#attachedDisk", "type": "PERSISTENT", "mode": "READ_WRITE", "boot": index == 0,
			"index":      index,
			"deviceName": device, "source": source, "interface": "SCSI", "autoDelete": goes,
		}
	}
	items := []map[string]any{}
	for k, v := range i.Attributes {
		items = append(items, map[string]any{"key": k, "value": v})
	}
	slices.SortFunc(items, func(a, b map[string]any) int {
		return strings.Compare(a["key"].(string),
			b["key"].(string))
	})
	out := resource{
		"kind": "compute#instance", "id": answer.Decimal(i.ID), "name": i.Name, "zone": zone, "status": i.Status,
		"selfLink": zone + "/instances/" + i.Name, "machineType": zone + "/machineTypes/" + i.MachineType(),
		"creationTimestamp": timestamp(i.Created), "labels": i.Labels, "canIpForward": true,
		"disks": []any{disk(0, "persistent-disk-0", zone+"/disks/"+i.BootDisk().Name, true),
			disk(1, instance.DeviceName, i.diskPlace(base)+"/disks/"+i.DataDisk.Name, i.Made.DataGoes)},
		"metadata": map[string]any{"kind": "compute#metadata", "items": items},
		"networkInterfaces": []any{map[string]any{
			"kind": "compute#networkInterface", "name": "nic0", "networkIP": i.Address.String(), "network": base +
				"/global/networks/default", "subnetwork": base + "/regions/" + instance.RegionOf(i.Zone) +
				"/subnetworks/default",
		}},
		"scheduling":      scheduling(i.Spot),
		"serviceAccounts": i.ServiceAccounts(),
	}
	if i.ExternalIP.IsValid() {
		nic := out["networkInterfaces"].([]any)[0].(map[string]any)
		nic["accessConfigs"] = []any{map[string]any{"kind": "compute#accessConfig", "type": accessType,
			"name": accessName, "natIP": i.ExternalIP.String(), "networkTier": "PREMIUM"}}
	}
	if len(i.Made.Tags) > 0 {
		out["tags"] = map[string]any{"items": i.Made.Tags}
	}
	if !i.LastStop.IsZero() {
		out["lastStopTimestamp"] = timestamp(i.LastStop)
	}
	return answer.With(answer.With(out, i.Made.Shown), i.Shown)
}

// scheduling is a VM's: a Spot VM neither moves nor starts again.
func scheduling(spot bool) map[string]any {
	if spot {
		return map[string]any{"automaticRestart": false, "onHostMaintenance": "TERMINATE", "preemptible": true,
			"provisioningModel": "SPOT", "instanceTerminationAction": "STOP"}
	}
	return map[string]any{"automaticRestart": true, "onHostMaintenance": "MIGRATE", "preemptible": false,
		"provisioningModel": "STANDARD", "hostErrorTimeoutSeconds": 90}
}

// diskResources are an instance's boot disk, as old as the instance, and its data disk; without a name, or where it is
// hidden, the data disk alone.
func diskResources(base string, i shown) []resource {
	zone := base + "/zones/" + i.Zone
	users := []string{}
	if i.Name != "" {
		users = append(users, zone+"/instances/"+i.Name)
	}
	disk := func(d instance.Disk) resource {
		labels := i.Labels
		if d.Labels != nil {
			labels = d.Labels
		}
		return resource{
			"kind": "compute#disk", "id": answer.Decimal(d.ID), "name": d.Name, "zone": zone,
			"status": "READY", "selfLink": zone + "/disks/" + d.Name,
			"type":   zone + "/diskTypes/" + cmp.Or(d.Type, "pd-balanced"),
			"labels": labels, "sizeGb": strconv.FormatInt(max(1, d.Bytes>>30), 10),
			"creationTimestamp": timestamp(d.Created), "users": users,
		}
	}
	data := disk(i.DataDisk)
	data["status"] = i.diskStatus
	data["accessMode"] = cmp.Or(i.accessMode, "READ_WRITE_SINGLE")
	if i.regional {
		at := i.diskPlace(base)
		data = answer.With(data, resource{"region": at, "selfLink": at + "/disks/" + i.DataDisk.Name,
			"type": at + "/diskTypes/" + cmp.Or(i.DataDisk.Type, "pd-balanced"), "replicaZones": []string{zone}})
		delete(data, "zone")
	}
	if i.alsoOn != "" {
		data["users"] = append(slices.Clone(users), zone+"/instances/"+i.alsoOn)
	}
	data = answer.With(data, i.DataDisk.Shown)
	if i.Name == "" || i.hidden {
		return []resource{data}
	}
	boot := disk(i.BootDisk())
	boot["sourceImage"] = fullLink(cmp.Or(i.Made.Image, instance.ImageLink(instance.ImageName)))
	return []resource{boot, data}
}

// fullLink is a partial link as Google answers it.
func fullLink(partial string) string { return "https://www.googleapis.com/compute/v1/" + partial }

func zoneResource(zones, name string) resource {
	return resource{
		"kind": "compute#zone", "name": name, "status": "UP", "selfLink": zones + "/" + name,
		"region": strings.TrimSuffix(zones, "/zones") + "/regions/" + instance.RegionOf(name),
	}
}

// filterTerm is one comparison: field operator value. Google's newer and older spellings of equality are both known.
var filterTerm = regexp.MustCompile(
	`^\s*\(*\s*([A-Za-z][\w.\-]*)\s*(!=|=|:|\beq\b|\bne\b)\s*("[^"]*"|[^\s()]+)\s*\)*\s*(?:AND\b)?`)

// parseFilter understands comparisons joined by AND (or by nothing, which means the same). Anything else is an error,
// as a filter that is silently ignored would be worse.
func parseFilter(filter string) (keep func(resource) bool, err error) {
	var terms []func(resource) bool
	for rest := strings.TrimSpace(filter); rest != ""; {
		m := filterTerm.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q: comparisons such as labels.key=value, joined by AND, are understood", rest)
		}
		field, value := m[1], strings.Trim(m[3], `"`)
		if m[2] == ":" && value != "*" {
			return nil, errors.New("the operator ':' is understood only with '*'")
		}
		negated := m[2] == "!=" || m[2] == "ne"
		terms = append(terms, func(r resource) bool {
			found, ok := r.field(field)
			if m[2] == ":" {
				return ok
			}
			return (ok && found == value) != negated
		})
		rest = strings.TrimSpace(rest[len(m[0]):])
	}
	return func(r resource) bool {
		for _, t := range terms {
			if !t(r) {
				return false
			}
		}
		return true
	}, nil
}

func (r resource) field(name string) (string, bool) {
	if key, ok := strings.CutPrefix(name, "labels."); ok {
		labels, _ := r["labels"].(map[string]string)
		v, ok := labels[key]
		return v, ok
	}
	v, ok := r[name].(string)
	return v, ok
}
