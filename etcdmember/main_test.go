package etcdmember

import (
	"testing"

	"github.com/quorate/quorate/etcdmember/etcdtest"
	"github.com/quorate/quorate/internal/realtest"
)

func TestMain(m *testing.M) {
	realtest.AtOnce(4)
	etcdtest.Main(m)
}
