package compute

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// stopInstance answers instances.stop for an instance's name or id.
func (c *Server) stopInstance(w http.ResponseWriter, r *http.Request) {
	c.order(w, r, "stop", "compute.instances.stop", func() (job, *refusal) {
		i, t, refused := c.namedInstance(r)
		return job{target: t, then: func() error { return c.conf.Changes.StopInstance(i.ID) }}, refused
	})
}

// deleteInstance answers instances.delete for an instance's name or id.
func (c *Server) deleteInstance(w http.ResponseWriter, r *http.Request) {
	c.order(w, r, "delete", "compute.instances.delete", func() (job, *refusal) {
		i, t, refused := c.namedInstance(r)
		return job{target: t, then: func() error {
			return c.conf.Changes.DeleteInstance(i.ID, i.Made.DataGoes)
		}}, refused
	})
}

// namedInstance is the instance that a request names, if no other operation is changing it.
func (c *Server) namedInstance(r *http.Request) (instance.VM, target, *refusal) {
	t := targetOf(r, "instances", r.PathValue("name"))
	for _, i := range c.conf.Instances() {
		if i.Zone == t.zone && (i.Name == t.name || answer.Decimal(i.ID) == t.name) {
			t.name, t.id = i.Name, i.ID
			return i, t, c.checkReady(t)
		}
	}
	return instance.VM{}, t, absent(t)
}

// deleteDisk answers disks.delete for a disk's name or id. One that a VM has is refused.
func (c *Server) deleteDisk(w http.ResponseWriter, r *http.Request) {
	c.order(w, r, "delete", "compute.disks.delete", func() (job, *refusal) {
		t := targetOf(r, "disks", r.PathValue("name"))
		d, by, found := c.disk(t.zone, func(d instance.Disk) bool {
			return d.Name == t.name || answer.Decimal(d.ID) == t.name
		})
		if !found {
			return job{}, absent(t)
		}
		t.name, t.id = d.Name, d.ID
		if by != "" {
			return job{}, inUse(t, by)
		}
		return job{target: t, then: func() error { return c.conf.Changes.DeleteDisk(d.ID) }}, c.checkReady(t)
	})
}

// insertDisk answers disks.insert.
func (c *Server) insertDisk(w http.ResponseWriter, r *http.Request) {
	var asked diskRequest
	unread := decode(r, &asked)
	c.order(w, r, "insert", "compute.disks.create", func() (job, *refusal) {
		t := targetOf(r, "disks", asked.Name)
		t.id = instance.NewID()
		if refused := firstOf(unread, c.checkZone(t.zone)); refused != nil {
			return job{}, refused
		}
		d, refused := asked.disk(t)
		return job{target: t, now: func() error { return c.conf.Changes.AddDisk(t.zone, d) },
			then: func() error { return nil }}, firstOf(refused, c.checkFree(t))
	})
}

// insertInstance answers instances.insert. Nothing is left of an instance that does not start, but for its data disk.
func (c *Server) insertInstance(w http.ResponseWriter, r *http.Request) {
	var asked instanceRequest
	unread := decode(r, &asked)
	c.order(w, r, "insert", "compute.instances.create", func() (job, *refusal) {
		t := targetOf(r, "instances", asked.Name)
		t.id = instance.NewID()
		if refused := firstOf(unread, c.checkZone(t.zone)); refused != nil {
			return job{}, refused
		}
		i, refused := asked.instance(t, c.conf.Images)
		boot := target{resource: "disks", zone: t.zone, name: i.BootDisk().Name}
		if refused = firstOf(refused, c.checkFree(t), c.checkFree(boot)); refused == nil {
			i.DataDisk, refused = c.freeDisk(t.zone, asked.Disks[1].Source)
		}
		if refused == nil {
			i.ExternalIP, refused = c.freeAddress(t, asked.NetworkInterfaces[0].Access...)
		}
		return job{target: t, now: func() error { return c.conf.Changes.AddInstance(i) }, then: func() error {
			err := c.conf.Changes.StartInstance(t.id)
			if err != nil {
				err = errors.Join(err, c.conf.Changes.DeleteInstance(t.id, false))
			}
			return err
		}}, refused
	})
}

func absent(t target) *refusal {
	return &refusal{http.StatusNotFound, "notFound", "The resource '" + t.path() + "' was not found"}
}

func inUse(t target, by string) *refusal {
	return &refusal{http.StatusBadRequest, "resourceInUseByAnotherResource",
		fmt.Sprintf("The disk resource '%s' is already being used by '%s'", t.path(), by)}
}

func invalid(field, value, why string) *refusal {
	return &refusal{http.StatusBadRequest, "invalid",
		fmt.Sprintf("Invalid value for field 'resource.%s': '%s'. %s", field, value, why)}
}

func firstOf(list ...*refusal) *refusal {
	for _, r := range list {
		if r != nil {
			return r
		}
	}
	return nil
}

// refuse answers why an order does not begin.
func refuse(w http.ResponseWriter, why *refusal) { answer.Error(w, why.status, why.reason, why.text) }

// checkZone refuses what is to be made in a zone that there is not.
func (c *Server) checkZone(zone string) *refusal {
	if c.conf.Zones == nil || slices.Contains(c.conf.Zones, zone) {
		return nil
	}
	return &refusal{http.StatusNotFound, "notFound",
		"The resource 'projects/" + instance.ProjectID + "/zones/" + zone + "' was not found"}
}

// checkReady refuses what another operation is changing.
func (c *Server) checkReady(t target) *refusal {
	if _, busy := c.operations.underWay(t.resource, t.id); !busy {
		return nil
	}
	return &refusal{http.StatusBadRequest, "resourceNotReady", "The resource '" + t.path() + "' is not ready"}
}

// checkFree refuses a name that something has in the zone; of instances in any, as VMs here have names of their own.
func (c *Server) checkFree(t target) *refusal {
	taken := false
	if t.resource == "disks" {
		_, _, taken = c.disk(t.zone, func(d instance.Disk) bool { return d.Name == t.name })
	}
	for _, i := range c.conf.Instances() {
		if t.resource != "instances" || i.Name != t.name {
			continue
		}
		if taken = i.Zone == t.zone; !taken {
			return invalid("name", t.name, "localgce's VMs have names of their own: "+i.Zone+" has one of this name.")
		}
	}
	if !taken {
		return nil
	}
	return exists(t)
}

// freeDisk is the disk that a link names, if no VM has it.
func (c *Server) freeDisk(zone, source string) (instance.Disk, *refusal) {
	t := target{resource: "disks", zone: zone, name: last(source)}
	if refused := checkLink("disks[1].source", source, zone, "disks"); refused != nil {
		return instance.Disk{}, refused
	}
	d, by, found := c.disk(zone, func(d instance.Disk) bool { return d.Name == t.name })
	switch {
	case !found:
		return d, absent(t)
	case by != "":
		return d, inUse(t, by)
	}
	t.id = d.ID
	return d, c.checkReady(t)
}

// disk is a disk of a zone, and the link of the VM that it is attached to, if there is one.
func (c *Server) disk(zone string, is func(instance.Disk) bool) (d instance.Disk, by string, found bool) {
	for _, i := range c.all() {
		if i.Zone != zone {
			continue
		}
		disks := []instance.Disk{i.DataDisk}
		if i.Name != "" {
			disks = append(disks, i.BootDisk())
			by = target{resource: "instances", zone: zone, name: i.Name}.path()
		}
		if n := slices.IndexFunc(disks, is); n >= 0 {
			return disks[n], by, true
		}
		by = ""
	}
	return instance.Disk{}, "", false
}
