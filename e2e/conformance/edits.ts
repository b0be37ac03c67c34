import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A change of the tests of kubevirt/ipam-extensions, without which they cannot run against Holdfast. */
export interface Edit {
  /** Its reason, for the report. */
  readonly why: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export const EDITS: readonly Edit[] = [
  {
    why: 'the NAD is a bridge with the IPAM of Holdfast, in place of OVN-Kubernetes',
    file: 'env/generate.go',
    from: '"type": "ovn-k8s-cni-overlay",',
    to: '"type": "bridge", "bridge": "conformance0",',
  },
  {
    why: 'the same NAD: Holdfast reads subnets of its own IPAM section',
    file: 'env/generate.go',
    from: '"subnets": "10.100.200.0/24",',
    to: '"ipam": {"type": "holdfast", "subnets": [{"cidr": "10.100.200.0/24"}]},',
  },
  {
    why: 'Holdfast creates the claim with the VM, so the tests look at the conditions of a VMI that does not exist yet',
    file: 'env/matcher.go',
    from: '\treturn vmi.Status.Conditions\n',
    to: '\tif vmi == nil {\n\t\treturn nil\n\t}\n\treturn vmi.Status.Conditions\n',
  },
];

/**
 * Applies the edits to a copy of the tests.
 * @throws {Error} if a text does not occur exactly once
 */
export async function applyEdits(folder: string, edits: readonly Edit[] = EDITS): Promise<void> {
  for (const { file, from, to } of edits) {
    const path = join(folder, file);
    const parts = (await readFile(path, 'utf8')).split(from);
    if (parts.length !== 2) {
      throw new Error(`${file} has ${String(parts.length - 1)} times, and not once, the text ${JSON.stringify(from)}`);
    }
    await writeFile(path, parts.join(to));
  }
}
