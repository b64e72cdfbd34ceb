package compute

import (
	"net/http"
	"time"

	"github.com/quorate/quorate/internal/localgce/answer"
	"github.com/quorate/quorate/internal/localgce/instance"
)

// operation is what compute/v1 answers to an order that takes time: a resource of the zone, which is asked for until it
// is DONE.
type operation struct {
	id       uint64
	instance instance.VM
	// request is the caller's requestId: the same one twice is one order.
	request      string
	begun, ended time.Time
	err          error
}

func (o *operation) name() string { return "operation-" + answer.Decimal(o.id) }

// stopInstance answers instances.stop for an instance's name or id. It is refused to the VMs themselves, whose agents
// only ever read.
func (c *Server) stopInstance(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
		return
	}
	if c.conf.Stop == nil || c.conf.Caller(r) != "" {
		answer.Error(w, http.StatusForbidden, "forbidden",
			"Required 'compute.instances.stop' permission for 'projects/"+instance.ProjectID+"'")
		return
	}
	name, zone := r.PathValue("name"), r.PathValue("zone")
	for _, i := range c.conf.Instances() {
		if i.Zone == zone && (i.Name == name || answer.Decimal(i.ID) == name) {
			answer.JSON(w, c.operationResource(r, c.beginStop(i, r.URL.Query().Get("requestId"))))
			return
		}
	}
	c.missing(w, zone, "instances", name)
}

// beginStop is the operation that stops an instance: a new one, or the one that the request has begun before.
func (c *Server) beginStop(i instance.VM, request string) operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		if request != "" && o.request == request {
			return *o
		}
	}
	o := &operation{id: instance.NewID(), instance: i, request: request, begun: time.Now()}
	c.operations = append(c.operations, o)
	c.conf.Stop(i.ID, func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.ended, o.err = time.Now(), err
	})
	return *o
}

// getOperation answers zoneOperations.get.
func (c *Server) getOperation(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
		return
	}
	name, zone := r.PathValue("name"), r.PathValue("zone")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		if o.instance.Zone == zone && (o.name() == name || answer.Decimal(o.id) == name) {
			answer.JSON(w, c.operationResource(r, *o))
			return
		}
	}
	c.missing(w, zone, "operations", name)
}

func (c *Server) operationResource(r *http.Request, o operation) resource {
	zone := "http://" + r.Host + "/compute/v1/projects/" + instance.ProjectID + "/zones/" + o.instance.Zone
	out := resource{
		"kind": "compute#operation", "id": answer.Decimal(o.id), "name": o.name(), "zone": zone, "operationType": "stop",
		"status": "RUNNING", "progress": 0,
		"targetId": answer.Decimal(o.instance.ID), "targetLink": zone + "/instances/" + o.instance.Name, "selfLink": zone +
			"/operations/" + o.name(),
		"insertTime": timestamp(o.begun), "startTime": timestamp(o.begun), "clientOperationId": o.request,
	}
	if o.ended.IsZero() {
		return out
	}
	out["status"], out["progress"], out["endTime"] = "DONE", 100, timestamp(o.ended)
	if o.err != nil {
		out["httpErrorStatusCode"], out["httpErrorMessage"] = http.StatusInternalServerError, "INTERNAL SERVER ERROR"
		out["error"] = map[string]any{"errors": []any{map[string]any{"code": "INTERNAL_ERROR",
			"message": o.err.Error()}}}
	}
	return out
}
