import { MIGRATIONS } from '../../../bed/story/vms/migrations.js';
import { callSubresource } from '../../../bed/story/vms/vm.js';
import type { EmulatedProgram } from './program.js';

type Verb = 'start' | 'stop' | 'restart';

function subresourceVerb(verb: Verb | 'migrate'): EmulatedProgram {
  return {
    prefix: `virtctl ${verb}`,
    isNeeded: () => true,
    parse([name = '', ...others]) {
      if (name.startsWith('-') || others.length > 0) throw new Error(`the demo supports only "virtctl ${verb} VM"`);
      return async ({ client }, namespace) => {
        if (verb === 'migrate') await client.create(MIGRATIONS, migrationOf({ namespace, name }));
        else await callSubresource(client, { namespace, name }, verb);
        return `VM ${name} was scheduled to ${verb}`;
      };
    },
  };
}

function migrationOf({ namespace, name }: { namespace: string; name: string }) {
  const metadata = { namespace, generateName: 'kubevirt-migrate-vm-' } as unknown as {
    namespace: string;
    name: string;
  };
  return { metadata, spec: { vmiName: name } };
}

/** Emulates virtctl, which is never installed with the bed. */
export const VIRTCTL: readonly EmulatedProgram[] = (['start', 'stop', 'restart', 'migrate'] as const).map(
  subresourceVerb,
);
