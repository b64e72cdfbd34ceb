package main

// rows are the promises about repairs and stalls: medians in seconds, with what the same steps take by hand beside
// them. Each is followed by what it takes where the services are like Google's.
func (r *repairs) rows() (out []row) {
	if r == nil {
		return nil
	}
	for _, p := range []struct {
		what string
		goal float64
		of   func(repair) seconds
	}{
		{"recreated with an empty disk, to voter", goalEmptyVoter, func(r repair) seconds { return r.EmptyVoter }},
		{"recreated with an empty disk, to /readyz", goalEmptyReady, func(r repair) seconds { return r.EmptyReady }},
		{"recreated with its disk, to voter", goalKeptVoter, func(r repair) seconds { return r.KeptVoter }},
		{"recreated with its disk, to /readyz", goalKeptReady, func(r repair) seconds { return r.KeptReady }},
		{"longest write stall, follower lost", goalFollowerLost, func(r repair) seconds { return r.FollowerLost }},
		{"longest write stall, leader lost", goalLeaderLost, func(r repair) seconds { return r.LeaderLost }},
		{"longest write stall, leader stopped as planned", goalLeaderStopped,
			func(r repair) seconds { return r.LeaderStopped }},
	} {
		quorate, floor := spreadOfRepairs(r.Quorate, p.of), spreadOfRepairs(r.Floor, p.of)
		out = append(out, row{What: p.what, Unit: "s", Quorate: quorate, Floor: &floor, Value: quorate.Median,
			Goal: p.goal, Absolute: true, OK: quorate.Median <= p.goal})
		late := spreadOfRepairs(r.LikeGoogle, p.of)
		out = append(out, row{What: p.what + likeGoogle, Unit: "s", Quorate: late, Floor: &floor,
			Value: late.Median, Absolute: true, OK: true})
	}
	return out
}

// likeGoogle is behind the names of rows of which quorate's side had to wait for services as Google's are.
const likeGoogle = ", with Google's times"

func spreadOfRepairs(rounds []repair, of func(repair) seconds) spread {
	var values []float64
	for _, r := range rounds {
		values = append(values, float64(of(r)))
	}
	return spreadOf(values)
}

// disturbed counts the rounds that began on a machine that was busy with something else.
func (r *repairs) disturbed() (n, all int) {
	if r == nil {
		return 0, 0
	}
	for _, side := range [][]repair{r.Quorate, r.LikeGoogle, r.Floor} {
		for _, round := range side {
			if all++; round.Busy > quietEnough {
				n++
			}
		}
	}
	return n, all
}
