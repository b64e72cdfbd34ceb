package setup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/record"
)

const (
	// slowList is what a list of the region's VMs may take before the agents' proofs take long.
	slowList = 5 * time.Second
	// hostErrorTimeout is the shortest that Google allows.
	hostErrorTimeout = 90 * time.Second
)

func (l *list) zones(f Facts) {
	if !answered(l, subjectZones, "compute.zones.list", f.Zones) {
		return
	}
	var up []string
	for _, z := range f.Zones.Answer {
		if z.Status == "UP" {
			up = append(up, z.Name)
			continue
		}
		l.add(record.Warn, subjectZones, fmt.Sprintf("%s is %s", z.Name, z.Status),
			"The agents' lists of VMs are complete only once each zone of the region answers.")
	}
	switch {
	case len(f.Zones.Answer) == 0:
		l.add(record.Fail, subjectZones, fmt.Sprintf("the region %s has none", f.Region),
			"No master can be there. The inception names the region for good.", "gcloud compute regions list")
	case len(f.unknownZones()) > 0:
		l.add(record.Fail, subjectZones, fmt.Sprintf("%s is no zone of %s", strings.Join(f.unknownZones(), ", "), f.Region),
			"No VM can be made there. There are: "+strings.Join(up, ", "),
			"gcloud compute zones list --project="+f.Project)
	case len(up) < 3:
		l.add(record.Warn, subjectZones, fmt.Sprintf("%d of %s answer (%s)", len(up), f.Region, strings.Join(up, ", ")),
			"Three masters in fewer than three zones do not survive the loss of any one of them.")
	default:
		l.ok(subjectZones, "%s: %s", f.Region, strings.Join(up, ", "))
	}
}

// unknownZones are those in which masters are to be made, and which the region does not have.
func (f Facts) unknownZones() (out []string) {
	for _, vm := range f.Planned {
		if !slices.ContainsFunc(f.Zones.Answer, func(z Zone) bool { return z.Name == vm.Zone }) {
			out = append(out, vm.Zone)
		}
	}
	return out
}

// masters judges the VMs and their disks.
func (l *list) masters(f Facts) {
	if !answered(l, subjectMasters, "compute.instances.list", f.VMs) {
		return
	}
	switch {
	case len(f.VMs.Answer) == 0 && len(f.Planned) > 0:
		l.ok(subjectMasters, "none is there yet; those that the document says are judged")
		return
	case len(f.VMs.Answer) == 0:
		l.add(record.Warn, subjectMasters, fmt.Sprintf("no VM in %s has the label quorate-cluster=%s: VMs, disks and "+
			"firewall are not checked", f.Region, f.Cluster),
			"So it is before the masters are created. Run this again afterwards.")
		return
	}
	if f.Took > slowList {
		l.add(record.Warn, subjectMasters, fmt.Sprintf("listing them took %s", f.Took.Round(100*time.Millisecond)),
			"The agents list them for each proof that a VM is gone, and have 20 s for all of it.")
	}
	for _, vm := range f.VMs.Answer {
		before := len(l.found)
		l.master(f, vm)
		l.okUnless(before, subjectMasters, "%s: %s, label, scope and scheduling are right", vm.Place, vm.Status)
		if vm.Labelled {
			l.dataDisk(f, vm)
		}
	}
}

func (l *list) master(f Facts, vm VM) {
	name := vm.Name + " --zone=" + vm.Zone
	if !vm.Labelled {
		l.add(record.Fail, subjectMasters, fmt.Sprintf("%s has a Cluster document of %s, and not the label "+
			"quorate-cluster=%s", vm.Place, f.Cluster, f.Cluster),
			"The agents find one another by the label. Without it this VM is absent for them, and may be taken for "+
				"gone.",
			"gcloud compute instances add-labels "+name+" --labels=quorate-cluster="+f.Cluster)
		return
	}
	l.account(vm, name)
	if vm.Spot {
		l.add(record.Fail, subjectMasters, fmt.Sprintf("%s is a Spot VM", vm.Place),
			"It can be taken away at any time, together with others, and has 30 s to stop, where a master takes up "+
				"to 80 s. Recreate it as a standard VM with the same name and disk (docs/gce.md, step 9).",
			"gcloud compute instances delete "+name+" --keep-disks=data")
	} else {
		l.scheduling(vm, name)
	}
	if vm.SecureBoot {
		l.add(record.Warn, subjectMasters, fmt.Sprintf("%s has Secure Boot on", vm.Place),
			"The image that quorate bakes is not signed and does not boot with it. Google's own images do.",
			"gcloud compute instances stop "+name,
			"gcloud compute instances update "+name+" --no-shielded-secure-boot")
	}
}

// account judges the identity of a VM.
func (l *list) account(vm VM, name string) {
	has, narrow := NarrowScopes(vm.Scopes)
	switch {
	case vm.Account == "":
		l.add(record.Fail, subjectMasters, fmt.Sprintf("%s has no service account", vm.Place),
			"It can ask Google for nothing: no record, no key, no list of VMs.", "gcloud compute instances stop "+name,
			"gcloud compute instances set-service-account "+name+" --service-account=ACCOUNT --scopes=cloud-platform")
	case narrow:
		l.add(record.Fail, subjectMasters, fmt.Sprintf("%s lacks the scope cloud-platform (it has: %s)", vm.Place, has),
			"Scopes cap what IAM allows: requests are refused with 403, whatever the account's roles are.",
			"gcloud compute instances stop "+name,
			"gcloud compute instances set-service-account "+name+" --service-account="+vm.Account+" "+
				"--scopes=cloud-platform")
	}
}

func (l *list) scheduling(vm VM, name string) {
	set := "gcloud compute instances set-scheduling " + name
	if !vm.Migrates {
		l.add(record.Warn, subjectMasters, fmt.Sprintf("%s is stopped when its host is maintained", vm.Place),
			"It is away for minutes, and gets no notice in time to hand leadership over.",
			set+" --maintenance-policy=MIGRATE")
	}
	if !vm.Restarts {
		l.add(record.Fail, subjectMasters, fmt.Sprintf("%s is not started again after its host fails", vm.Place),
			"It stays off until a person starts it, and a second failure ends the quorum.", set+" --restart-on-failure")
	}
	if vm.HostErrorTimeout != hostErrorTimeout {
		l.add(record.Warn, subjectMasters, fmt.Sprintf("%s waits for a dead host longer than the %s that it could",
			vm.Place,
			hostErrorTimeout), "Until then the VM counts as running, for up to 5.5 minutes.",
			set+" --host-error-timeout-seconds=90")
	}
}

func (l *list) dataDisk(f Facts, vm VM) {
	name := vm.Name + " --zone=" + vm.Zone
	i := slices.IndexFunc(vm.Disks, func(d Disk) bool { return d.Device == f.DataDisk })
	if i < 0 {
		l.add(record.Fail, subjectDisks, fmt.Sprintf("%s has no disk with the device name %s", vm.Place, f.DataDisk),
			"The agent waits for it (data-disk-missing). A device name is given when a disk is attached.",
			"gcloud compute instances detach-disk "+name+" --disk=DISK",
			"gcloud compute instances attach-disk "+name+" --disk=DISK --device-name="+f.DataDisk)
		return
	}
	d, before := vm.Disks[i], len(l.found)
	if d.Boot {
		l.add(record.Fail, subjectDisks, fmt.Sprintf("%s: the data disk is the boot disk", vm.Place),
			"A VM that is recreated for its repair loses the replica's data with it. Recreate it with a disk of its "+
				"own.",
			fmt.Sprintf("gcloud compute disks create %s-data --zone=%s --labels=quorate-cluster=%s", vm.Name, vm.Zone,
				f.Cluster))
		return
	}
	if d.AutoDelete {
		l.add(record.Fail, subjectDisks, fmt.Sprintf("%s: %s is deleted together with its VM", vm.Place, d.Name),
			"Recreating the VM is the repair. It would take the replica's data with it.",
			"gcloud compute instances set-disk-auto-delete "+name+" --no-auto-delete --disk="+d.Name)
	}
	if answered(l, subjectDisks, "compute.disks.get", d.Details) {
		l.diskDetails(f, vm, d)
	}
	l.okUnless(before, subjectDisks, "%s: %s is a disk of its own that stays, with the label and one user", vm.Place,
		d.Name)
}

func (l *list) diskDetails(f Facts, vm VM, d Disk) {
	where := " --zone=" + d.Where
	if d.Regional {
		where = " --region=" + d.Where
	}
	if !d.Details.Answer.Labelled {
		l.add(record.Warn, subjectDisks, fmt.Sprintf("%s: %s lacks the label quorate-cluster=%s", vm.Place, d.Name,
			f.Cluster),
			"A VM's labels are not its disks'. Who cleans up by label finds neither whose disk it is nor that it is "+
				"needed.",
			"gcloud compute disks add-labels "+d.Name+where+" --labels=quorate-cluster="+f.Cluster)
	}
	if mode := d.Details.Answer.AccessMode; mode != "" && mode != "READ_WRITE_SINGLE" {
		l.add(record.Fail, subjectDisks, fmt.Sprintf("%s: %s has the access mode %s", vm.Place, d.Name, mode),
			"Two VMs that write one file system destroy it.",
			"gcloud compute disks update "+d.Name+where+" --access-mode=READ_WRITE_SINGLE")
	}
	if users := d.Details.Answer.Users; len(users) > 1 {
		l.add(record.Fail, subjectDisks, fmt.Sprintf("%s: %s is attached to %s", vm.Place, d.Name, strings.Join(users,
			", ")),
			"Two VMs that write one file system destroy it.", "gcloud compute instances detach-disk OTHER "+
				"--disk="+d.Name)
	}
}
