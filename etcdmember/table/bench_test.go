package table

import "testing"

// BenchmarkDecide is what each look at the membership costs beside its I/O: ten times a second while a boot waits.
func BenchmarkDecide(b *testing.B) {
	for name, f := range map[string]Facts{"first boot": blank(), "three of three": three()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if plan := Decide(f.Now, Classify(f)); plan.Row == 0 {
					b.Fatal("no row decided")
				}
			}
		})
	}
}
