package order

import (
	"fmt"
	"strconv"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// CheckReplicas checks the order for a number of replicas.
func (l Log) CheckReplicas(text string) (Draft, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > replica.MostReplicas {
		return Draft{}, Refuse("replicas %q: a number from 1 to %d is needed", text, replica.MostReplicas)
	}
	d := Draft{Order: record.Order{Kind: record.OrderReplicas, Replicas: n}, Back: withdrawIt}
	d.Means = "No VM is made or deleted by it."
	switch {
	case n == 2:
		d.Means += " One of the two is the voter and the other a warm copy of it: a second voter would survive no " +
			"failure and be one more that can fail."
	case n%2 == 0:
		d.Means += fmt.Sprintf(" %d voters survive no more failures than %d.", n, n-1)
	}
	if o, ok := l.inForce(kindIs(record.OrderReplicas)); ok && o.Replicas == n {
		d.Already = fmt.Sprintf("Order %d says so already, %s.", o.Number, given(o))
	}
	return d, nil
}
