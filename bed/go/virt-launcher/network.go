package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	v1 "kubevirt.io/api/core/v1"
	disks "kubevirt.io/kubevirt/pkg/ephemeral-disk-utils"
	"kubevirt.io/kubevirt/pkg/network/cache"
	"kubevirt.io/kubevirt/pkg/network/driver/nmstate"
	"kubevirt.io/kubevirt/pkg/network/netns"
	network "kubevirt.io/kubevirt/pkg/network/setup"
	"kubevirt.io/kubevirt/pkg/network/setup/netpod"
	"kubevirt.io/kubevirt/pkg/safepath"
	"kubevirt.io/kubevirt/pkg/virt-launcher/virtwrap/api"
)

// The user of a launcher pod, in KubeVirt's image and here.
const qemuUser = 107

// prepareNetwork makes bridges and taps in the network namespace of a launcher, by the code of virt-handler.
func prepareNetwork(vmi *v1.VirtualMachineInstance, launcher string) error {
	pid, err := strconv.Atoi(launcher)
	if err != nil {
		return err
	}
	if err := addTun(pid); err != nil {
		return err
	}
	namespace := netns.New(pid)
	if err := namespace.Do(allowLowPorts); err != nil {
		return err
	}
	var files cache.CacheCreator
	podCache := cache.NewPodInterfaceCache(files, string(vmi.UID))
	if err := podCache.Remove(); err != nil { // of an earlier launcher on this node
		return err
	}
	states := network.NewConfigStateCache(string(vmi.UID), files)
	interfaces := vmi.Spec.Domain.Devices.Interfaces
	pod := netpod.NewNetPod(vmi.Spec.Networks, interfaces, string(vmi.UID), pid, qemuUser, 0,
		netpod.NewState(&states, namespace), netpod.WithCacheCreator(files), netpod.WithNMStateAdapter(links{nmstate.New()}))
	return pod.Setup()
}

// allowLowPorts stands for the capability that the file of virt-launcher has in KubeVirt's image: its DHCP server listens on port 67.
func allowLowPorts() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
}

// qemuFiles gives files to the launcher's user without a line for it in /etc/passwd.
type qemuFiles struct{}

func init() { disks.DefaultOwnershipManager = qemuFiles{} }

func (qemuFiles) UnsafeSetFileOwnership(file string) error { return os.Chown(file, qemuUser, qemuUser) }

func (q qemuFiles) SetFileOwnership(file *safepath.Path) error {
	return safepath.ChownAtNoFollow(file, qemuUser, qemuUser)
}

// addTun makes the device in a launcher that KubeVirt's device plugin gives it. runc allows it to all containers.
func addTun(launcher int) error {
	folder := fmt.Sprintf("/proc/%d/root/dev/net", launcher)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	err := unix.Mknod(folder+"/tun", unix.S_IFCHR, int(unix.Mkdev(10, 200)))
	if err != nil && err != unix.EEXIST {
		return err
	}
	return os.Chmod(folder+"/tun", 0o666)
}

// links makes what KubeVirt asks for, also on kernels without dummy interfaces. These only hold addresses, which bridges without
// ports can.
type links struct{ nmstate.NMState }

func (l links) Apply(spec *nmstate.Spec) error {
	probe := &netlink.Dummy{LinkAttrs: netlink.LinkAttrs{Name: "probe"}}
	if err := netlink.LinkAdd(probe); err == unix.EOPNOTSUPP {
		for i := range spec.Interfaces {
			if spec.Interfaces[i].TypeName == nmstate.TypeDummy {
				spec.Interfaces[i].TypeName = nmstate.TypeBridge
			}
		}
	} else if err != nil {
		return err
	} else if err := netlink.LinkDel(probe); err != nil {
		return err
	}
	return l.NMState.Apply(spec)
}

// domainInterfaces starts the DHCP servers of bindings that have one, by the code of virt-launcher.
// It returns the interfaces of the guest with their taps and MAC addresses.
func domainInterfaces(vmi *v1.VirtualMachineInstance) ([]api.Interface, error) {
	domain := &api.Domain{}
	attachments := map[string]string{}
	for _, iface := range vmi.Spec.Domain.Devices.Interfaces {
		domain.Spec.Devices.Interfaces = append(domain.Spec.Devices.Interfaces,
			api.Interface{Alias: api.NewUserDefinedAlias(iface.Name)})
		attachments[iface.Name] = string(v1.Tap)
	}
	configurator := network.NewVMNetworkConfigurator(vmi, cache.CacheCreator{}, network.WithDomainAttachments(attachments))
	return domain.Spec.Devices.Interfaces, configurator.SetupPodNetworkPhase2(domain, vmi.Spec.Networks)
}

// createTap does what KubeVirt's cmd/virt-chroot/tap_device_maker.go does.
func createTap(args []string) error {
	flags := flag.NewFlagSet("create-tap", flag.ContinueOnError)
	name := flags.String("tap-name", "", "")
	uid := flags.Uint("uid", 0, "")
	gid := flags.Uint("gid", 0, "")
	queues := flags.Int("queue-number", 0, "")
	mtu := flags.Int("mtu", 0, "")
	if len(args) == 0 || args[0] != "create-tap" {
		return fmt.Errorf("virt-chroot: unknown command %q", args)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	tap := &netlink.Tuntap{
		LinkAttrs: netlink.LinkAttrs{Name: *name},
		Mode:      unix.IFF_TAP,
		Owner:     uint32(*uid),
		Group:     uint32(*gid),
		Flags:     netlink.TUNTAP_DEFAULTS,
	}
	if *queues > 1 {
		tap.Flags = netlink.TUNTAP_MULTI_QUEUE_DEFAULTS
	}
	if err := netlink.LinkAdd(tap); err != nil {
		return err
	}
	return netlink.LinkSetMTU(tap, *mtu)
}
