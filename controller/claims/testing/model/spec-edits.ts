import type { VmiSpec } from '../../../../api/kubevirt.js';

/** Edits of the networks in a VM's or VMI's spec. */

export function plug(spec: VmiSpec, name: string, nad: string): void {
  spec.networks = [
    ...(spec.networks ?? []).filter((network) => network.name !== name),
    { name, multus: { networkName: nad } },
  ];
  setAbsent(spec, name, false);
}

export function unplug(spec: VmiSpec, names: readonly string[]): void {
  spec.networks = (spec.networks ?? []).filter(({ name }) => !names.includes(name));
  setInterfaces(
    spec,
    interfacesOf(spec).filter(({ name }) => !names.includes(name)),
  );
}

export function setAbsent(spec: VmiSpec, name: string, absent: boolean): void {
  const others = interfacesOf(spec).filter((entry) => entry.name !== name);
  setInterfaces(spec, [...others, { name, ...(absent && { state: 'absent' }) }]);
}

/** What a new VMI gets of a VM's spec. */
export function withoutAbsent(spec: VmiSpec): VmiSpec {
  const copy = structuredClone(spec);
  const absent = interfacesOf(copy).filter(({ state }) => state === 'absent');
  unplug(
    copy,
    absent.map(({ name }) => name),
  );
  return copy;
}

function interfacesOf(spec: VmiSpec) {
  return spec.domain?.devices?.interfaces ?? [];
}

function setInterfaces(spec: VmiSpec, interfaces: { name: string; state?: string }[]): void {
  interfaces.sort((a, b) => a.name.localeCompare(b.name));
  spec.domain = { devices: { interfaces } };
}
