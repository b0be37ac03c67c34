// Command hotplug is the dynamic networks controller for one running pod. It adapts the pod's interfaces to its networks
// annotation with the packages of Multus, and writes the result to network-status.
//
// It is called like a CNI plugin: Multus' configuration on standard input, and CNI_CONTAINERID, CNI_NETNS, CNI_PATH and CNI_ARGS
// of the pod's sandbox in the environment. It prints {"attached":[...],"detached":[...]} with names of interfaces, or a CNI
// error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/pkg/skel"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	nettypes "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	nadutils "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/utils"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/k8sclient"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/multus"
	"gopkg.in/k8snetworkplumbingwg/multus-cni.v4/pkg/types"
	v1 "k8s.io/api/core/v1"
)

func main() {
	result, err := follow()
	if err != nil {
		result = cnitypes.NewError(cnitypes.ErrInternal, err.Error(), "")
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
	if err != nil {
		os.Exit(1)
	}
}

type changes struct {
	Attached []string `json:"attached"`
	Detached []string `json:"detached"`
}

// sandbox is one pod with the configuration of Multus.
type sandbox struct {
	args   *skel.CmdArgs
	k8s    *types.K8sArgs
	config *types.NetConf
	client *k8sclient.ClientInfo
	pod    *v1.Pod
}

func follow() (any, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	attached, err := s.load()
	if err != nil {
		return nil, err
	}
	wanted, problem := s.wanted()
	statuses, err := nadutils.GetNetworkStatus(s.pod)
	if err != nil {
		return nil, err
	}
	done := changes{Attached: []string{}, Detached: []string{}}
	// An error with one network does not stop the others.
	attached = slices.DeleteFunc(attached, func(delegate *types.DelegateNetConf) bool {
		name := delegate.IfnameRequest
		if problem != nil || delegate.MasterPlugin || slices.ContainsFunc(wanted, same(delegate)) {
			return false
		}
		if err := s.detach(delegate); err != nil {
			problem = errors.Join(problem, fmt.Errorf("detach %s: %w", name, err))
			return false
		}
		done.Detached = append(done.Detached, name)
		statuses = slices.DeleteFunc(statuses, func(status nettypes.NetworkStatus) bool { return status.Interface == name })
		return true
	})
	for _, delegate := range wanted {
		if slices.ContainsFunc(attached, same(delegate)) {
			continue
		}
		added, err := s.attach(delegate, attached)
		if err != nil {
			problem = errors.Join(problem, fmt.Errorf("attach %s: %w", delegate.IfnameRequest, err))
			continue
		}
		done.Attached = append(done.Attached, delegate.IfnameRequest)
		attached = append(attached, delegate)
		for _, status := range added {
			statuses = append(statuses, *status)
		}
	}
	if len(done.Attached)+len(done.Detached) > 0 {
		err = s.save(attached)
		if err == nil {
			err = k8sclient.SetNetworkStatus(s.client, s.k8s, statuses, s.config)
		}
	}
	return done, errors.Join(problem, err)
}

func same(one *types.DelegateNetConf) func(*types.DelegateNetConf) bool {
	return func(other *types.DelegateNetConf) bool {
		return one.IfnameRequest == other.IfnameRequest && one.Name == other.Name
	}
}

func open() (*sandbox, error) {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, err
	}
	s := &sandbox{args: &skel.CmdArgs{
		ContainerID: os.Getenv("CNI_CONTAINERID"),
		Netns:       os.Getenv("CNI_NETNS"),
		IfName:      os.Getenv("CNI_IFNAME"),
		Args:        os.Getenv("CNI_ARGS"),
		Path:        os.Getenv("CNI_PATH"),
		StdinData:   stdin,
	}}
	if s.config, err = types.LoadNetConf(stdin); err != nil {
		return nil, err
	}
	if s.k8s, err = k8sclient.GetK8sArgs(s.args); err != nil {
		return nil, err
	}
	if s.client, err = k8sclient.GetK8sClient(s.config.Kubeconfig, nil); err != nil {
		return nil, err
	}
	namespace, name, uid := string(s.k8s.K8S_POD_NAMESPACE), string(s.k8s.K8S_POD_NAME), string(s.k8s.K8S_POD_UID)
	if s.pod, err = s.client.GetPod(namespace, name); err != nil {
		return nil, err
	}
	if string(s.pod.UID) != uid {
		return nil, fmt.Errorf("pod %s/%s has the UID %s, the sandbox is of %s", namespace, name, s.pod.UID, uid)
	}
	return s, nil
}

// wanted returns the networks of the annotation, each with the name of its interface.
func (s *sandbox) wanted() ([]*types.DelegateNetConf, error) {
	selections, err := k8sclient.GetPodNetwork(s.pod)
	var none *k8sclient.NoK8sNetworkError
	if errors.As(err, &none) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var delegates []*types.DelegateNetConf
	var problem error
	for i, selection := range selections {
		found, err := k8sclient.GetNetworkDelegates(s.client, s.pod, []*types.NetworkSelectionElement{selection}, s.config, nil)
		if err != nil {
			problem = errors.Join(problem, err)
			continue
		}
		delegates = append(delegates, named(found[0], i+1))
	}
	return delegates, problem
}

// named gives a delegate the name that Multus gives to an unnamed interface at that position.
func named(delegate *types.DelegateNetConf, place int) *types.DelegateNetConf {
	if delegate.IfnameRequest == "" {
		delegate.IfnameRequest = fmt.Sprintf("net%d", place)
	}
	return delegate
}

func (s *sandbox) attach(delegate *types.DelegateNetConf, attached []*types.DelegateNetConf) ([]*nettypes.NetworkStatus, error) {
	for _, other := range attached { // else the failure would take that one away
		if other.IfnameRequest == delegate.IfnameRequest {
			return nil, fmt.Errorf("%s is still attached to %s", other.IfnameRequest, other.Name)
		}
	}
	rt, _ := types.CreateCNIRuntimeConf(s.args, s.k8s, delegate.IfnameRequest, nil, delegate)
	result, err := multus.DelegateAdd(nil, s.client, s.pod, delegate, rt, s.config)
	if err != nil {
		_ = s.detach(delegate)
		return nil, err
	}
	return nadutils.CreateNetworkStatuses(result, delegate.Name, false, nil)
}

func (s *sandbox) detach(delegate *types.DelegateNetConf) error {
	rt, _ := types.CreateCNIRuntimeConf(s.args, s.k8s, delegate.IfnameRequest, nil, delegate)
	return multus.DelegateDel(nil, s.pod, delegate, rt, s.config)
}

func (s *sandbox) file() string { return filepath.Join(s.config.CNIDir, s.args.ContainerID) }

// load reads the delegates that Multus has attached, first that of the pod network.
func (s *sandbox) load() ([]*types.DelegateNetConf, error) {
	text, err := os.ReadFile(s.file())
	if err != nil {
		return nil, fmt.Errorf("the pod was never attached: %w", err)
	}
	var delegates []*types.DelegateNetConf
	if err := json.Unmarshal(text, &delegates); err != nil {
		return nil, fmt.Errorf("%s: %w", s.file(), err)
	}
	for i, delegate := range delegates {
		delegate.ConfListPlugin = len(delegate.ConfList.Plugins) > 0
		if delegate.MasterPlugin = i == 0; !delegate.MasterPlugin {
			named(delegate, i)
		}
	}
	return delegates, nil
}

// save records the delegates, so that a later DEL of Multus detaches them.
func (s *sandbox) save(delegates []*types.DelegateNetConf) error {
	text, err := json.Marshal(delegates)
	if err != nil {
		return err
	}
	return os.WriteFile(s.file(), text, 0o600)
}
