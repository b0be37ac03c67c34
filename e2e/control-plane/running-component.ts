import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { writeServiceAccountKubeconfig } from '../../bed/control-plane/service-accounts.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { until } from '../../bed/processes/wait.js';
import type { CommonConfig } from '../../process/config/config.js';
import type { Settings } from '../../process/config/setting.js';
import { type Component, type ProcessContext, closeContext, createContext } from '../../process/context.js';
import { defaultConfig } from '../../test/default-config.js';

/** A component in this process, with the shipped identity of another one. */
export interface RunningComponent {
  readonly component: Component;
  readonly context: ProcessContext;
}

interface ComponentOptions<Config> {
  readonly process: 'controller' | 'ipam' | 'webhook';
  readonly settings: Settings<Config>;
  /** Of the default values. */
  readonly changes: Partial<Config>;
  readonly create: (context: ProcessContext, config: Config) => Component;
}

/** Starts a component, and waits until it is ready. */
export async function startComponent<Config extends CommonConfig>(
  plane: ControlPlane,
  { process, settings, changes, create }: ComponentOptions<Config>,
): Promise<RunningComponent> {
  const account = { namespace: HOLDFAST_NAMESPACE, name: `holdfast-${process}` };
  const kubeconfig = await writeServiceAccountKubeconfig(plane, account);
  const config: Config = { ...defaultConfig(settings), kubeconfig, logLevel: 'error', ...changes };
  const context = await createContext(process, config);
  const component = create(context, config);
  await component.start();
  await until(`${process} to be ready`, () => component.ready?.() === undefined);
  return { component, context };
}

export async function stopComponent({ component, context }: RunningComponent): Promise<void> {
  await component.stop();
  await closeContext(context);
}
