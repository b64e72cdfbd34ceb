package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// diskRequest is the body of disks.insert, as far as it is understood here.
type diskRequest struct {
	Name   string            `json:"name"`
	SizeGB int64             `json:"sizeGb,string"`
	Type   string            `json:"type"`
	Labels map[string]string `json:"labels"`
}

// instanceRequest is the body of instances.insert, as far as it is understood here.
type instanceRequest struct {
	Name              string             `json:"name"`
	MachineType       string             `json:"machineType"`
	CanIPForward      bool               `json:"canIpForward"`
	Labels            map[string]string  `json:"labels"`
	Metadata          metadataRequest    `json:"metadata"`
	Tags              tagsRequest        `json:"tags"`
	NetworkInterfaces []interfaceRequest `json:"networkInterfaces"`
	Disks             []attachRequest    `json:"disks"`
	Scheduling        schedulingRequest  `json:"scheduling"`
	ServiceAccounts   []instance.Account `json:"serviceAccounts"`
	Shielded          *shieldedRequest   `json:"shieldedInstanceConfig"`
}

type metadataRequest struct {
	Items []struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	} `json:"items"`
}

type tagsRequest struct {
	Items []string `json:"items"`
}

type interfaceRequest struct {
	Network    string          `json:"network"`
	Subnetwork string          `json:"subnetwork"`
	Access     []accessRequest `json:"accessConfigs"`
}

type attachRequest struct {
	Boot       bool        `json:"boot"`
	AutoDelete bool        `json:"autoDelete"`
	DeviceName string      `json:"deviceName"`
	Mode       string      `json:"mode"`
	Source     string      `json:"source"`
	Initialize bootRequest `json:"initializeParams"`
}

type bootRequest struct {
	DiskName    string            `json:"diskName"`
	DiskSizeGB  int64             `json:"diskSizeGb,string"`
	DiskType    string            `json:"diskType"`
	SourceImage string            `json:"sourceImage"`
	Labels      map[string]string `json:"labels"`
}

type schedulingRequest struct {
	OnHostMaintenance       string `json:"onHostMaintenance,omitempty"`
	AutomaticRestart        *bool  `json:"automaticRestart,omitempty"`
	HostErrorTimeoutSeconds int    `json:"hostErrorTimeoutSeconds,omitempty"`
	Preemptible             bool   `json:"preemptible,omitempty"`
	ProvisioningModel       string `json:"provisioningModel,omitempty"`
}

type shieldedRequest struct {
	EnableSecureBoot          bool `json:"enableSecureBoot"`
	EnableVTPM                bool `json:"enableVtpm"`
	EnableIntegrityMonitoring bool `json:"enableIntegrityMonitoring"`
}

// decode reads a request's body. A field that would have no effect here is refused: nobody is to believe that it had.
func decode(r *http.Request, to any) *refusal {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return &refusal{http.StatusBadRequest, "badRequest", "localgce cannot make this: " + err.Error()}
	}
	return nil
}

// parameters are those of a query that an order may have. Those of a stop have no effect: it is always in order.
var parameters = []string{"alt", "prettyPrint", "requestId", "noGracefulShutdown", "discardLocalSsd",
	"networkInterface", "accessConfig"}

func checkQuery(r *http.Request) *refusal {
	for name := range r.URL.Query() {
		if !slices.Contains(parameters, name) {
			return &refusal{http.StatusBadRequest, "invalidParameter", "localgce does not know the parameter '" + name + "'."}
		}
	}
	return nil
}

const (
	nameRule  = `[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?`
	labelRule = `[-_a-z0-9]{0,63}`
)

var (
	isName  = regexp.MustCompile(`^` + nameRule + `$`)
	isLabel = regexp.MustCompile(`^` + labelRule + `$`)
	// diskTypes are those that there are.
	diskTypes = []string{"pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme"}
)

// minDiskGB is GCE's least size of a persistent disk.
const minDiskGB = 10

// last is the last part of a link.
func last(link string) string { return link[strings.LastIndexByte(link, '/')+1:] }

// isPartial says whether a link, whole or partial, is of a path of the project with a name at its end.
func isPartial(link, folder string) bool {
	name, ok := strings.CutPrefix(strings.TrimPrefix(partial(link), "projects/"+instance.ProjectID+"/"), folder+"/")
	return ok && isName.MatchString(name)
}

// partial is a link from the project on.
func partial(link string) string {
	if at := strings.Index(link, "projects/"); at >= 0 {
		return link[at:]
	}
	return link
}

// checkLink refuses what is no link to something of that kind in the zone.
func checkLink(field, link, zone, kind string) *refusal {
	if isPartial(link, "zones/"+zone+"/"+kind) {
		return nil
	}
	return invalid(field, link, "The URL is malformed: it must be projects/"+instance.ProjectID+"/zones/"+zone+"/"+kind+
		"/NAME.")
}

func checkName(field, name string) *refusal {
	if isName.MatchString(name) {
		return nil
	}
	return invalid(field, name, "Must be a match of regex '"+nameRule+"'")
}

func checkLabels(field string, labels map[string]string) *refusal {
	for k, v := range labels {
		if !isLabel.MatchString(k) || !isLabel.MatchString(v) || k == "" || k[0] < 'a' || k[0] > 'z' {
			return invalid(field, k+"="+v, "Label keys and values can only contain lowercase letters, digits, "+
				"underscores and dashes; keys begin with a letter.")
		}
	}
	return nil
}

func checkDiskType(field, link, zone string) *refusal {
	if link == "" || isPartial(link, "zones/"+zone+"/diskTypes") && slices.Contains(diskTypes, last(link)) {
		return nil
	}
	return invalid(field, link, "The referenced diskType resource cannot be found.")
}

// disk is what is asked for, or why it cannot be.
func (a diskRequest) disk(t target) (instance.Disk, *refusal) {
	var small *refusal
	if a.SizeGB < minDiskGB {
		small = invalid("sizeGb", fmt.Sprint(a.SizeGB), fmt.Sprintf("Disk size cannot be smaller than %d GB.", minDiskGB))
	}
	d := instance.Disk{ID: t.id, Name: a.Name, Bytes: a.SizeGB << 30, Created: time.Now().UTC(), Labels: own(a.Labels),
		Type: last(a.Type)}
	return d, firstOf(checkName("name", a.Name), checkLabels("labels", a.Labels), small,
		checkDiskType("type", a.Type, t.zone))
}

// own are a resource's labels: no others are taken in the place of none.
func own(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

// instance is what is asked for but for its data disk, or why it cannot be.
func (a instanceRequest) instance(t target, images []instance.Image) (i instance.VM, refused *refusal) {
	if refused := a.checkDisks(t.zone); refused != nil {
		return i, refused
	}
	boot := a.Disks[0].Initialize
	image, refused := imageOf(boot.SourceImage, images)
	if refused != nil {
		return i, refused
	}
	i = instance.VM{ID: t.id, Name: a.Name, Zone: t.zone, Labels: own(a.Labels), Attributes: map[string]string{},
		Created: time.Now().UTC(), Made: instance.Made{
			DataGoes: a.Disks[1].AutoDelete, Image: instance.ImageLink(image.Name), Tags: a.Tags.Items,
			Boot: instance.Disk{Name: boot.DiskName, Bytes: boot.DiskSizeGB << 30, Labels: own(boot.Labels),
				Type: last(boot.DiskType)},
			MachineType: last(a.MachineType), Shown: a.shown()},
		Spot: a.Scheduling.Preemptible || a.Scheduling.ProvisioningModel == "SPOT"}
	for _, m := range a.Metadata.Items {
		i.Attributes[m.Key] = m.Value
	}
	return i, firstOf(checkName("name", a.Name), checkLabels("labels", a.Labels),
		checkLink("machineType", a.MachineType, t.zone, "machineTypes"), a.checkNetwork(t.zone), a.checkAccount())
}

// shown is what the Compute API shows of an instance as it was asked for.
func (a instanceRequest) shown() map[string]any {
	out := map[string]any{"canIpForward": a.CanIPForward, "serviceAccounts": []instance.Account{}}
	for _, s := range a.ServiceAccounts { // one at most
		out["serviceAccounts"] = []instance.Account{{Email: instance.MastersAccount(), Scopes: s.Scopes}}
	}
	spot := a.Scheduling.Preemptible || a.Scheduling.ProvisioningModel == "SPOT"
	given := map[string]any{}
	text, _ := json.Marshal(a.Scheduling) // plain values
	_ = json.Unmarshal(text, &given)
	out["scheduling"] = answer.With(scheduling(spot), given)
	if a.Shielded != nil {
		out["shieldedInstanceConfig"] = a.Shielded
	}
	return out
}

// checkDisks: a VM here has a boot disk that is made with it, and a data disk that was there before.
func (a instanceRequest) checkDisks(zone string) *refusal {
	if len(a.Disks) != 2 || !a.Disks[0].Boot || a.Disks[1].Boot {
		return invalid("disks", fmt.Sprint(len(a.Disks)), "localgce's VMs have a boot disk, which is made with them, "+
			"and then a data disk that is there.")
	}
	boot, data := a.Disks[0], a.Disks[1]
	init := boot.Initialize
	var refused *refusal
	switch {
	case boot.Source != "":
		refused = invalid("disks[0].source", boot.Source, "localgce makes the boot disk with its VM.")
	case !boot.AutoDelete:
		refused = invalid("disks[0].autoDelete", "false", "localgce deletes the boot disk with its VM.")
	case data.Source == "" || data.Initialize.SourceImage != "" || data.Initialize.DiskSizeGB != 0:
		refused = invalid("disks[1].source", data.Source, "localgce attaches a data disk that is there.")
	case data.Mode != "" && data.Mode != "READ_WRITE":
		refused = invalid("disks[1].mode", data.Mode, "localgce's VMs write to their data disk.")
	case data.DeviceName != instance.DeviceName:
		refused = invalid("disks[1].deviceName", data.DeviceName, "localgce's VMs know their data disk as "+
			instance.DeviceName+".")
	case init.DiskName != "":
		refused = checkName("disks[0].initializeParams.diskName", init.DiskName)
	}
	return firstOf(refused, checkLabels("disks[0].initializeParams.labels", init.Labels),
		checkDiskType("disks[0].initializeParams.diskType", init.DiskType, zone))
}

// checkNetwork: there is one network, with one subnetwork in each region.
func (a instanceRequest) checkNetwork(zone string) *refusal {
	if len(a.NetworkInterfaces) != 1 {
		return invalid("networkInterfaces", fmt.Sprint(len(a.NetworkInterfaces)), "localgce's VMs have one.")
	}
	n := a.NetworkInterfaces[0]
	for link, folder := range map[string]string{n.Network: "global/networks",
		n.Subnetwork: "regions/" + instance.RegionOf(zone) + "/subnetworks"} {
		if link != "" && (!isPartial(link, folder) || last(link) != "default") {
			return &refusal{http.StatusNotFound, "notFound", "The resource '" + link + "' was not found"}
		}
	}
	return nil
}

// checkAccount: there is one service account, which VMs may also be without.
func (a instanceRequest) checkAccount() *refusal {
	for n, s := range a.ServiceAccounts {
		if n > 0 || s.Email != instance.MastersAccount() && s.Email != "default" {
			return invalid(fmt.Sprintf("serviceAccounts[%d].email", n), s.Email, "localgce has one service account: "+
				instance.MastersAccount()+".")
		}
	}
	return nil
}
