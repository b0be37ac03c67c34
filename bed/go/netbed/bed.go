package main

import (
	"fmt"
	"net"
	"sort"
	"sync"
	"syscall"
)

// bed knows all spaces by name: "fabric", "node/<name>", "pod/<id>", "host/<name>", "guest/<id>", "machine/<id>".
type bed struct {
	mutex  sync.Mutex
	spaces map[string]*space
	nodes  map[string]*node
	podsOf map[string]string // space of a pod → name of its node
	fabric *fabric
	guests map[string]*guest
	// processes by the id of the request that started them
	processes map[int]*process
}

// node is the state of a node besides its space.
type node struct {
	joined  map[string]bool
	joining sync.Mutex
}

func newBed() *bed {
	return &bed{spaces: map[string]*space{}, nodes: map[string]*node{}, podsOf: map[string]string{}, fabric: &fabric{},
		guests: map[string]*guest{}, processes: map[int]*process{}}
}

func (b *bed) find(name string) (*space, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if s := b.spaces[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("there is no %q", name)
}

// remember closes a space that it cannot store.
func (b *bed) remember(name string, s *space) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.spaces[name] != nil {
		s.close()
		return fmt.Errorf("%q is there already", name)
	}
	b.spaces[name] = s
	return nil
}

// forget removes a space with all its interfaces and started processes. A space that does not exist is no error.
func (b *bed) forget(name string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if s := b.spaces[name]; s != nil {
		for _, p := range b.processes {
			if p.space == name {
				_ = p.signal(syscall.SIGKILL)
			}
		}
		s.close()
		delete(b.spaces, name)
		delete(b.podsOf, name)
	}
}

type podRequest struct{ Node, Pod string }

type podAnswer struct {
	Netns string `json:"netns"`
}

func (b *bed) addPod(request podRequest) (any, error) {
	if _, err := b.find("node/" + request.Node); err != nil {
		return nil, err
	}
	s, err := newSpace(nil)
	if err != nil {
		return nil, err
	}
	name := "pod/" + request.Pod
	if err := b.remember(name, s); err != nil {
		return nil, err
	}
	b.mutex.Lock()
	b.podsOf[name] = request.Node
	b.mutex.Unlock()
	return podAnswer{s.path()}, nil
}

func (b *bed) removePod(request podRequest) (any, error) {
	b.forget("pod/" + request.Pod)
	return done{}, nil
}

type nothing struct{}

type inventory struct {
	Netns string `json:"netns"`
	// Node of a pod.
	Node       string   `json:"node,omitempty"`
	Interfaces []string `json:"interfaces"`
}

// inventory lists all spaces, for tests that nothing is left behind. None is removed meanwhile.
func (b *bed) inventory(nothing) (any, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	found := map[string]inventory{}
	for name, s := range b.spaces {
		entry := inventory{Netns: s.path(), Node: b.podsOf[name], Interfaces: []string{}}
		err := s.run(func() error {
			interfaces, err := net.Interfaces()
			for _, i := range interfaces {
				if i.Name != "lo" {
					entry.Interfaces = append(entry.Interfaces, i.Name)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		sort.Strings(entry.Interfaces)
		found[name] = entry
	}
	return found, nil
}
