package localgce

import (
	"net/http"
	"time"
)

// operation is what compute/v1 answers to an order that takes time: a resource of the zone, which is asked for until it
// is DONE.
type operation struct {
	id       uint64
	instance Instance
	// request is the caller's requestId: the same one twice is one order.
	request      string
	begun, ended time.Time
	err          error
}

func (o *operation) name() string { return "operation-" + decimal(o.id) }

// stopInstance answers instances.stop for an instance's name or id. It is refused to the VMs themselves, whose agents
// only ever read.
func (c *ComputeServer) stopInstance(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
		return
	}
	if c.stop == nil || c.caller(r) != "" {
		apiError(w, http.StatusForbidden, "forbidden",
			"Required 'compute.instances.stop' permission for 'projects/"+ProjectID+"'")
		return
	}
	name, zone := r.PathValue("name"), r.PathValue("zone")
	for _, i := range c.instances() {
		if i.Zone == zone && (i.Name == name || decimal(i.ID) == name) {
			answer(w, c.operationResource(r, c.beginStop(i, r.URL.Query().Get("requestId"))))
			return
		}
	}
	c.missing(w, zone, "instances", name)
}

// beginStop is the operation that stops an instance: a new one, or the one that the request has begun before.
func (c *ComputeServer) beginStop(i Instance, request string) operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		if request != "" && o.request == request {
			return *o
		}
	}
	o := &operation{id: newID(), instance: i, request: request, begun: time.Now()}
	c.operations = append(c.operations, o)
	c.stop(i.ID, func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.ended, o.err = time.Now(), err
	})
	return *o
}

// getOperation answers zoneOperations.get.
func (c *ComputeServer) getOperation(w http.ResponseWriter, r *http.Request) {
	if !c.checkProject(w, r) {
		return
	}
	name, zone := r.PathValue("name"), r.PathValue("zone")
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.operations {
		if o.instance.Zone == zone && (o.name() == name || decimal(o.id) == name) {
			answer(w, c.operationResource(r, *o))
			return
		}
	}
	c.missing(w, zone, "operations", name)
}

func (c *ComputeServer) operationResource(r *http.Request, o operation) resource {
	zone := "http://" + r.Host + "/compute/v1/projects/" + ProjectID + "/zones/" + o.instance.Zone
	out := resource{
		"kind": "compute#operation", "id": decimal(o.id), "name": o.name(), "zone": zone, "operationType": "stop",
		"status": "RUNNING", "progress": 0,
		"targetId": decimal(o.instance.ID), "targetLink": zone + "/instances/" + o.instance.Name, "selfLink": zone +
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
