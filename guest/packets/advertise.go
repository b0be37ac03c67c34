package main

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/rfc1035label"
	"github.com/mdlayher/ndp"
)

// Router advertisements tell a guest to use DHCPv6 and which prefixes are on its link. They go to guests of the table
// only, in unicast frames: an advertisement to all nodes would configure every host of the segment. Their router
// lifetime is 0, because this is no router.

const (
	leastDNSLifetime      = time.Hour // of resolvers in advertisements
	maxPrefixes           = 16
	leastIPv6MTU          = 1280
	advertisementInterval = 3 * time.Second // between advertisements to one guest (RFC 4861, section 6.2.6)
	scanEvery             = time.Second
)

// receiveSolicitation answers a router solicitation of a guest with an IPv6 address.
func (r *responder) receiveSolicitation(now time.Time, from mac, source netip.Addr) {
	guest := r.admit(now, from)
	if guest == nil || !guest.ipv6.IsValid() {
		return
	}
	if now.Sub(guest.advertisedAt) < advertisementInterval {
		r.count("ndp", "router-solicitation", "none")
		return
	}
	r.count("ndp", "router-solicitation", "advertisement")
	if !source.IsLinkLocalUnicast() {
		source = allNodes // in a unicast frame, as in RFC 6085
	}
	r.advertise(now, guest, source)
}

// advertiseToAll sends the unsolicited advertisements that are due, spread evenly over the guests.
func (r *responder) advertiseToAll(now time.Time) {
	if now.Sub(r.scannedAt) < scanEvery || !r.table.isComplete {
		return
	}
	r.scannedAt = now
	interval := int(seconds(r.config.Times.Advertise).Milliseconds())
	for _, guest := range r.table.guests {
		switch {
		case !guest.ipv6.IsValid():
		case guest.advertiseAt.IsZero():
			guest.advertiseAt = now.Add(time.Duration(r.random(interval)) * time.Millisecond)
		case !now.Before(guest.advertiseAt):
			// 25 % more or less, so that guests stay spread.
			next := interval*3/4 + r.random(interval/2+1)
			guest.advertiseAt = now.Add(time.Duration(next) * time.Millisecond)
			r.count("ndp", "unsolicited", "advertisement")
			r.advertise(now, guest, allNodes)
		}
	}
}

func (r *responder) advertise(now time.Time, guest *guest, address netip.Addr) {
	guest.advertisedAt = now
	r.sendNDP(guest.mac, address, r.advertisement(guest))
}

func (r *responder) advertisement(guest *guest) *ndp.RouterAdvertisement {
	made := &ndp.RouterAdvertisement{ManagedConfiguration: true, OtherConfiguration: true}
	lifetime, dnsLifetime := seconds(r.config.Times.Lease), r.dnsLifetime()
	for _, prefix := range r.prefixesOf(guest) {
		made.Options = append(made.Options, &ndp.PrefixInformation{
			PrefixLength: uint8(prefix.Bits()), Prefix: prefix.Addr(), OnLink: true, ValidLifetime: lifetime, PreferredLifetime: lifetime,
		})
	}
	if mtu := guest.options.MTU; mtu >= leastIPv6MTU {
		made.Options = append(made.Options, ndp.NewMTU(mtu))
	}
	if servers := addresses(guest.options.DNS, 6); len(servers) > 0 {
		made.Options = append(made.Options, &ndp.RecursiveDNSServer{Lifetime: dnsLifetime, Servers: servers})
	}
	if search := guest.options.Search; len(search) > 0 {
		made.Options = append(made.Options, searchList(search, dnsLifetime))
	}
	return made
}

// dnsLifetime is at least three of the longest intervals between advertisements (RFC 8106, section 5.1): one may be lost.
func (r *responder) dnsLifetime() time.Duration {
	return max(leastDNSLifetime, 4*seconds(r.config.Times.Advertise))
}

// searchList returns the option of RFC 8106, section 5.2. That of ndp refuses names which are no valid IDNA.
func searchList(domains []string, lifetime time.Duration) ndp.Option {
	value := binary.BigEndian.AppendUint32([]byte{0, 0}, uint32(lifetime.Seconds()))
	value = append(value, (&rfc1035label.Labels{Labels: domains}).ToBytes()...)
	for len(value)%8 != 6 {
		value = append(value, 0)
	}
	return &ndp.RawOption{Type: 31, Length: uint8((len(value) + 2) / 8), Value: value}
}

// prefixesOf returns the prefixes on the segment, the guest's own one first.
func (r *responder) prefixesOf(guest *guest) (prefixes []netip.Prefix) {
	for _, isOwn := range []bool{true, false} {
		for _, subnet := range r.config.Subnets {
			if subnet.CIDR.Addr().Is6() && subnet.CIDR.Contains(guest.ipv6) == isOwn && len(prefixes) < maxPrefixes {
				prefixes = append(prefixes, subnet.CIDR.Masked())
			}
		}
	}
	return prefixes
}

// addresses returns those of one version.
func addresses(all []netip.Addr, version int) (found []netip.Addr) {
	for _, each := range all {
		if (version == 4) == each.Is4() {
			found = append(found, each)
		}
	}
	return found
}
