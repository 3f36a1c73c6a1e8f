package checker

// verifyZones checks the proof of a violation by itself: it knows nothing of how
// the answer was found, and takes every number from the spans again. A proof
// that does not hold is a mistake of the checker, never a violation.
func verifyZones(spans []span, z zoneAnswer) bool {
	written := map[int32]int{}
	for _, s := range spans {
		if s.Write {
			written[s.Value]++
		}
	}
	for _, n := range written {
		if n > 1 {
			return false
		}
	}
	if written[initial] > 0 {
		return false
	}
	switch z.fault {
	case zonesUnwritten:
		return z.a != initial && written[z.a] == 0 && proofOf(spans, z.a).reads > 0
	case zonesEarly:
		p := proofOf(spans, z.a)
		return p.write >= 0 && p.first >= 0 && !spans[p.first].Write && spans[p.first].Ret < spans[p.write].Call
	case zonesConflict:
		a, b := proofOf(spans, z.a), proofOf(spans, z.b)
		return z.a != z.b && a.precedes(spans, b) && b.precedes(spans, a)
	default:
		return false
	}
}

// clusterProof names the operations of a cluster that matter, as indices of
// spans; -1 where there is none.
type clusterProof struct {
	value       int32
	write       int
	first, last int // smallest return, largest call
	reads       int
}

func proofOf(spans []span, value int32) clusterProof {
	p := clusterProof{value: value, write: -1, first: -1, last: -1}
	for i, s := range spans {
		if s.Value != value {
			continue
		}
		if s.Write {
			p.write = i
		} else {
			p.reads++
		}
		if s.Ret != forever && (p.first < 0 || s.Ret < spans[p.first].Ret) {
			p.first = i
		}
		if p.last < 0 || s.Call > spans[p.last].Call {
			p.last = i
		}
	}
	return p
}

// precedes: some operation of p returned before some operation of q was called.
// The initial value was there before everything.
func (p clusterProof) precedes(spans []span, q clusterProof) bool {
	if q.last < 0 || p.first < 0 && p.value != initial {
		return false
	}
	return p.value == initial || spans[p.first].Ret < spans[q.last].Call
}
